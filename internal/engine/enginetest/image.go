//go:build linux

package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	dockerimage "github.com/docker/docker/api/types/image"
)

// image is what containers are made of: an account with a home. Each image has a home of its own, because the path is the machine's: what
// in a container is a mount at one path is here a directory that is moved there, and two cannot be.
type image struct {
	id     string
	home   string
	labels map[string]string
	// created is the zero time for those that a test made.
	created time.Time
}

// untagged begins the key of an image that lost its name.
const untagged = "<none>@"

// ordinaryID is the account, and its group, that commands run as when the test runs as root.
const ordinaryID = 4242

// account is what commands run as.
func account() (uid, gid int) {
	if os.Geteuid() == 0 {
		return ordinaryID, ordinaryID
	}
	return os.Geteuid(), os.Getegid()
}

// User is the account of every image, as a container's configuration names it.
func User() string {
	uid, gid := account()
	return fmt.Sprintf("%d:%d", uid, gid)
}

// AddImage makes an image. One that is there is left as it is.
func (e *Engine) AddImage(ref string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.images[ref]; !there {
		id := newID()
		e.images[ref] = image{id: "sha256:" + id, home: e.path("homes", short(id))}
	}
}

// RemoveImage makes an image missing. Containers made of it are not touched.
func (e *Engine) RemoveImage(ref string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.images, ref)
}

// image finds an image by reference or id. e.mu is held.
func (e *Engine) image(ref string) (image, bool) {
	for name, i := range e.images {
		if name == ref || i.id == ref {
			return i, true
		}
	}
	return image{}, false
}

// imageSize is the size of every image, in bytes.
const imageSize = 1_000_000

// names are an image's references. e.mu is held.
func (e *Engine) names(id string) []string {
	var names []string
	for name, i := range e.images {
		if i.id == id && !strings.HasPrefix(name, untagged) {
			names = append(names, name)
		}
	}
	return names
}

// passwd is the image's /etc/passwd.
func (i image) passwd() string {
	uid, gid := account()
	return fmt.Sprintf("root:x:0:0:root:/root:/bin/bash\ntester:x:%d:%d::%s:/bin/bash\n", uid, gid, i.home)
}

// group is the image's /etc/group.
func (image) group() string {
	_, gid := account()
	return fmt.Sprintf("root:x:0:\ntester:x:%d:\n", gid)
}

// environ is the image's environment. HOME is among it because the machine's own passwd does not know the account.
func (i image) environ() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=" + i.home}
}

// Image implements the provider's engine.
func (e *Engine) Image(ctx context.Context, ref string) (dockerimage.InspectResponse, error) {
	var found dockerimage.InspectResponse
	if err := e.enter(ctx, OpImage); err != nil {
		return found, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i, ok := e.image(ref)
	if !ok {
		return found, notFound("looking for image %s: there is none", ref)
	}
	// As the API has it: the configuration's type is that of a module nothing else here needs.
	text, err := json.Marshal(map[string]any{"Id": i.id, "Architecture": runtime.GOARCH, "Os": "linux", "RepoTags": e.names(i.id), "Size": imageSize,
		"Config": map[string]any{"User": User(), "Labels": i.labels}})
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal(text, &found)
}
