"""What this copy of the plugin is. A test holds VERSION against plugin.yaml."""

VERSION = "0.1.0"

# The protocol of `dockerbox serve --stdio` (docs/protocol.md, section 1) this plugin speaks.
PROTOCOL = 1
