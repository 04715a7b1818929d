// Package plugin carries the Hermes plugin inside the binary, so that `dockerbox plugin install` needs no download and plugin and
// binary are always of one version.
package plugin

import "embed"

// FS holds the plugin as Hermes loads it, below [Root]: plugin.yaml and Python modules. Read-only, safe for concurrent use.
//
// The patterns name files, not the directory: a directory pattern needs `all:` to keep __init__.py and would then also embed the
// __pycache__ that any run of the plugin from a source tree leaves behind.
//
//go:embed hermes/dockerbox/plugin.yaml hermes/dockerbox/*.py
var FS embed.FS

// Root is the directory of [FS] whose content belongs into <HERMES_HOME>/plugins/dockerbox.
const Root = "hermes/dockerbox"

// BinaryRecord is the file beside the plugin's __init__.py that names the dockerbox executable to run: one absolute path, one line.
// Written by `dockerbox plugin install`, read by the plugin's locate.py.
const BinaryRecord = "binary"
