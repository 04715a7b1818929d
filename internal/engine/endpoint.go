package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/cli/cli/config"
	clicontext "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/tlsconfig"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Endpoint chooses the daemon. The zero value decides as the docker CLI does: DOCKER_HOST, then DOCKER_CONTEXT, then the current
// context, then the default socket. At most one field may be set.
type Endpoint struct {
	Host    string // such as unix:///run/docker.sock, tcp://…, ssh://…
	Context string // name of a docker context
}

// target is an endpoint after all sources were asked.
type target struct {
	host    string   // address for messages
	cliArgs []string // what makes a bare docker CLI reach it; nil for that CLI's own default
	opts    []client.Opt
}

// defaultContext is the docker CLI's name for "no context".
const defaultContext = "default"

// resolve follows the docker CLI's order. It reads the environment and the CLI's configuration files, no network.
func resolve(ep Endpoint) (target, error) {
	if ep.Host != "" && ep.Context != "" {
		return target{}, &contract.BackendError{
			Reason: "both a host and a context were given",
			Hint:   "use --host or --context, not both",
		}
	}
	name, err := contextName(ep)
	if err != nil {
		return target{}, err
	}
	if name != defaultContext {
		return resolveContext(name)
	}
	host := ep.Host
	if host == "" {
		host = os.Getenv(client.EnvOverrideHost)
	}
	return resolveHost(host)
}

func contextName(ep Endpoint) (string, error) {
	switch {
	case ep.Context != "":
		return ep.Context, nil
	case ep.Host != "" || os.Getenv(client.EnvOverrideHost) != "":
		return defaultContext, nil
	case os.Getenv("DOCKER_CONTEXT") != "":
		return os.Getenv("DOCKER_CONTEXT"), nil
	}
	// A file that cannot be read may name any context. The docker CLI warns and takes the default one; what is made or removed on a
	// daemon that nobody meant is worse than a refusal.
	cfg, err := config.Load(config.Dir())
	if err != nil {
		return "", &contract.BackendError{
			Reason: fmt.Sprintf("docker's configuration %s cannot be read, and it may name the daemon: %s", filepath.Join(config.Dir(), config.ConfigFileName), innermost(err.Error())),
			Hint:   "correct or remove that file, or choose the daemon with --host, --context or DOCKER_HOST", Err: err,
		}
	}
	if cfg.CurrentContext != "" {
		return cfg.CurrentContext, nil
	}
	return defaultContext, nil
}

const hintContext = "docker context ls lists the contexts there are; choose one with --context or DOCKER_CONTEXT"

func resolveContext(name string) (target, error) {
	fail := func(err error) (target, error) {
		return target{}, &contract.BackendError{
			Reason: fmt.Sprintf("docker context %q cannot be used: %s", name, Cause(err.Error())),
			Hint:   hintContext, Err: err,
		}
	}
	dir := config.ContextStoreDir()
	contexts := store.New(dir, store.NewConfig(
		func() any { return &struct{}{} },
		store.EndpointTypeGetter(docker.DockerEndpoint, func() any { return &docker.EndpointMeta{} }),
	))
	meta, err := contexts.GetMetadata(name)
	switch {
	case errdefs.IsNotFound(err):
		return target{}, &contract.BackendError{Reason: fmt.Sprintf("there is no docker context %q", name), Hint: hintContext, Err: err}
	case err != nil:
		return fail(err)
	}
	endpointMeta, err := docker.EndpointFromContext(meta)
	if err != nil {
		return fail(err)
	}
	endpoint, err := docker.WithTLSData(contexts, name, endpointMeta)
	if err != nil {
		return fail(err)
	}
	opts, err := endpoint.ClientOpts()
	if err != nil {
		return fail(err)
	}
	// The argv must work with nothing but PATH set, so it names the configuration directory too.
	return target{host: endpoint.Host, opts: opts, cliArgs: []string{"--config", config.Dir(), "--context", name}}, nil
}

func resolveHost(host string) (target, error) {
	endpoint := docker.Endpoint{EndpointMeta: docker.EndpointMeta{Host: host}}
	t := target{host: host}
	if host == "" {
		t.host = client.DefaultDockerHost
		endpoint.Host = t.host
	}
	if scheme, where, ok := strings.Cut(t.host, "://"); !ok || where == "" || !slices.Contains(schemes, scheme) {
		return target{}, notAnAddress(t.host, nil)
	}
	if t.host != client.DefaultDockerHost {
		t.cliArgs = []string{"--host", t.host}
	}
	tlsArgs, data, err := environmentTLS()
	if err != nil {
		return target{}, err
	}
	endpoint.TLSData = data
	if t.cliArgs != nil {
		t.cliArgs = append(t.cliArgs, tlsArgs...)
	}
	if t.opts, err = endpoint.ClientOpts(); err != nil {
		return target{}, notAnAddress(t.host, err)
	}
	return t, nil
}

// environmentTLS reads DOCKER_TLS_VERIFY and DOCKER_CERT_PATH as the docker CLI does.
func environmentTLS() ([]string, *clicontext.TLSData, error) {
	if os.Getenv(client.EnvTLSVerify) == "" {
		return nil, nil, nil
	}
	dir := os.Getenv(client.EnvOverrideCertPath)
	if dir == "" {
		dir = config.Dir()
	}
	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if _, err := tlsconfig.Client(tlsconfig.Options{CAFile: ca, CertFile: cert, KeyFile: key}); err != nil {
		return nil, nil, unusable(dir, err)
	}
	data, err := clicontext.TLSDataFromFiles(ca, cert, key)
	if err != nil {
		return nil, nil, unusable(dir, err)
	}
	return []string{"--tlsverify", "--tlscacert", ca, "--tlscert", cert, "--tlskey", key}, data, nil
}

// unusable explains certificates that cannot be taken from dir.
func unusable(dir string, err error) error {
	b := &contract.BackendError{
		Reason: fmt.Sprintf("the certificates in %s cannot be used: %s", dir, innermost(err.Error())),
		Hint:   "put ca.pem, cert.pem and key.pem of that daemon there, name another directory in DOCKER_CERT_PATH, or unset DOCKER_TLS_VERIFY", Err: err,
	}
	var missing []string
	for _, name := range []string{"ca.pem", "cert.pem", "key.pem"} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		b.Reason = fmt.Sprintf("DOCKER_TLS_VERIFY is set, but there is no %s in %s", strings.Join(missing, ", no "), dir)
	}
	return b
}

// schemes are those that the docker CLI takes as well, which has to reach the same daemon.
var schemes = []string{"unix", "tcp", "ssh", "npipe"}

func notAnAddress(host string, err error) error {
	return &contract.BackendError{
		Reason: fmt.Sprintf("%q is not an address of a docker daemon", host),
		Hint:   "an address (DOCKER_HOST, --host) looks like unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host", Err: err,
	}
}

// openClient builds the API client. The version is negotiated with the daemon on the first call (API 1.41 and up).
func (t target) openClient() (*client.Client, error) {
	opts := append([]client.Opt{client.WithHTTPHeaders(map[string]string{"User-Agent": "dockerbox"})}, t.opts...)
	c, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, notAnAddress(t.host, err)
	}
	return c, nil
}
