package verify

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// configuration checks what an image says of itself.
func (r *Report) configuration(i provider.Image) {
	here := "linux/" + i.Machine
	if i.Machine == "" {
		here = "linux/" + i.Architecture // of a machine that is not known there is nothing to say
	}
	r.expect(i.OS+"/"+i.Architecture == here, "platform", i.OS+"/"+i.Architecture, here+", the daemon's machine")
	c := i.Config
	name, _, _ := strings.Cut(c.User, ":")
	r.expect(name == Account || name == AccountID, "user", or(c.User, "none, which is root"), Account+", so that nothing runs as root unasked")
	r.environment(c.Env)
	r.command(c)
	r.expect(len(c.Volumes) == 0, "volumes", listKeys(c.Volumes), "none: each container would leave one behind")
	r.expect(len(c.ExposedPorts) == 0, "ports", listKeys(c.ExposedPorts), "none: the screen is reached by a socket alone")
	r.labels(c.Labels)
}

// variables are those an image has to set, and how.
var variables = []struct {
	name string
	ok   func(string) bool
	want string
}{
	{"PATH", searchable, "absolute directories, /usr/local/bin before /usr/bin"},
	{"LANG", func(s string) bool { return strings.HasSuffix(strings.ToUpper(s), "UTF-8") }, "a UTF-8 locale such as C.UTF-8"},
	{"XDG_RUNTIME_DIR", path.IsAbs, "a directory of the account's own"},
	{"PLAYWRIGHT_BROWSERS_PATH", path.IsAbs, "the directory in which Hermes looks for Chromium"},
	{"AGENT_BROWSER_EXECUTABLE_PATH", path.IsAbs, "the Chromium that agent-browser starts"},
	{"AGENT_BROWSER_NO_VERSION_CHECK", switchedOn, "1: nothing asks the network for newer versions"},
	{"CUA_DRIVER_RS_TELEMETRY_ENABLED", switchedOff, "0: nothing reports what is done here"},
	{"CUA_DRIVER_RS_UPDATE_CHECK", switchedOff, "0: nothing asks the network for newer versions"},
}

// builders are variables, in lower case, that belong to the machine on which an image was built. In the image they lead to files and
// addresses that are not there.
var builders = []string{
	"pip_cert", "pip_index_url", "requests_ca_bundle", "ssl_cert_file", "ssl_cert_dir", "node_extra_ca_certs", "npm_config_cafile",
	"npm_config_registry", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "debian_frontend",
}

func (r *Report) environment(env []string) {
	for _, v := range variables {
		value, set := lookup(env, v.name)
		r.expect(set && v.ok(value), "env "+v.name, or(value, "not set"), v.want)
	}
	home, set := lookup(env, "HOME")
	r.expect(!set, "env HOME", home, "not set: root would get it too, whose home is another one")
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains(builders, strings.ToLower(name)) {
			r.expect(false, "env "+name, value, "not set: it is about the machine on which the image was built")
		}
	}
}

// command checks what a container of the image does by itself, as in docker run or Hermes's own docker backend.
func (r *Report) command(c ocispec.ImageConfig) {
	r.expect(len(c.Entrypoint) == 0, "entrypoint", fmt.Sprintf("%q", c.Entrypoint), "none: it would stand before what Hermes runs")
	words := strings.Fields(strings.Join(c.Cmd, " "))
	endless := len(words) >= 2 && slices.Equal(words[len(words)-2:], []string{"sleep", "infinity"})
	r.expect(endless, "cmd", or(strings.Join(c.Cmd, " "), "none"), "sleep infinity, which keeps a container up")
}

func (r *Report) labels(labels map[string]string) {
	isSet := func(s string) bool { return s != "" }
	for _, l := range []struct {
		key  string
		ok   func(string) bool
		want string
	}{
		{ocispec.AnnotationTitle, isSet, "what the image is"},
		{ocispec.AnnotationVersion, isSet, "its version"},
		{ocispec.AnnotationRevision, isSet, "the revision of its source"},
		{ocispec.AnnotationSource, isURL, "the URL of its source"},
		{ocispec.AnnotationCreated, isTime, "when it was built, as RFC 3339 has it"},
		{ocispec.AnnotationBaseImageName, isSet, "the image it was built on"},
	} {
		value := labels[l.key]
		r.expect(l.ok(value), "label "+l.key, or(value, "not set"), l.want)
	}
}

// lookup finds a variable; as for the kernel, the last of a name counts.
func lookup(env []string, name string) (value string, set bool) {
	for _, entry := range env {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			value, set = v, true
		}
	}
	return value, set
}

func searchable(list string) bool {
	dirs := strings.Split(list, ":")
	own, system := slices.Index(dirs, "/usr/local/bin"), slices.Index(dirs, "/usr/bin")
	return own >= 0 && own < system && !slices.ContainsFunc(dirs, func(d string) bool { return !path.IsAbs(d) })
}

func switchedOn(s string) bool  { return s == "1" || strings.EqualFold(s, "true") }
func switchedOff(s string) bool { return s == "0" || strings.EqualFold(s, "false") }

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func listKeys(set map[string]struct{}) string {
	var all []string
	for key := range set {
		all = append(all, key)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
