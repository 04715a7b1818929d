package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// ErrPulling is the cause of the error for a sandbox whose image is not there yet.
var ErrPulling = errors.New("image is being pulled")

// WithBackgroundPull is for callers that nobody watches: a missing image is pulled in the background, once for all who need it, and a
// sandbox that is not made of it within patience is refused with [ErrPulling] and how far the pull is. A pull that fails in the meantime is
// told to the next who asks; the one after tries again. [Provider.Close] ends what is under way. Without the option whoever needs an image
// waits for it.
func WithBackgroundPull(patience time.Duration) Option {
	return func(p *Provider) {
		ctx, cancel := context.WithCancel(context.Background())
		p.background = &backgroundPulls{patience: patience, ctx: ctx, cancel: cancel, pulls: map[string]*backgroundPull{}}
	}
}

// backgroundPulls are pulls that outlive who asked for them.
type backgroundPulls struct {
	patience time.Duration
	ctx      context.Context //nolint:containedctx // of the pulls, which end with the provider
	cancel   context.CancelFunc

	mu     sync.Mutex
	pulls  map[string]*backgroundPull // by the image's full name: those under way, and those that failed and nobody was told
	closed bool
	all    sync.WaitGroup
}

// backgroundPull is one image's.
type backgroundPull struct {
	ref   string // as it was asked for
	began time.Time
	done  chan struct{} // closed at its end; then err may be read
	err   error

	mu  sync.Mutex
	far Pulled
}

// wait joins the pull of an image, or begins it, for as long as the patience lasts.
func (b *backgroundPulls) wait(ctx context.Context, p *Provider, ref string) error {
	pull, err := b.join(p, ref)
	if err != nil {
		return err
	}
	patience := time.NewTimer(b.patience)
	defer patience.Stop()
	select {
	case <-pull.done:
	case <-patience.C:
	case <-ctx.Done():
		return &contract.BackendError{
			Reason: "nobody waits any more for " + ref + ", which is being pulled", Hint: "try again; the pull goes on meanwhile", Err: context.Cause(ctx),
		}
	}
	select {
	case <-pull.done: // perhaps in the very last moment
		b.forget(pull)
		return pull.err
	default:
		return pull.notYet(p.now())
	}
}

// join finds the pull of an image and begins it if there is none.
func (b *backgroundPulls) join(p *Provider, ref string) (*backgroundPull, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := fullName(ref)
	if pull := b.pulls[key]; pull != nil {
		return pull, nil
	}
	if b.closed {
		return nil, &contract.BackendError{Reason: "the image " + ref + " is not pulled: dockerbox is about to end", Hint: "try again", Err: context.Canceled}
	}
	pull := &backgroundPull{ref: ref, began: p.now(), done: make(chan struct{})}
	b.pulls[key] = pull
	b.all.Go(func() {
		err := p.pull(b.ctx, ref, pull.observe)
		if err == nil {
			b.forget(pull) // before anybody looks for the image: the next to miss it is to pull it anew
		}
		if err != nil && b.ctx.Err() == nil {
			p.logf("%v", err)
		}
		pull.err = err
		close(pull.done)
	})
	return pull, nil
}

// forget lets the next who needs the image begin anew.
func (b *backgroundPulls) forget(pull *backgroundPull) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := fullName(pull.ref); b.pulls[key] == pull {
		delete(b.pulls, key)
	}
}

// underway says of each image that is being pulled how far it is, in the order of their names.
func (b *backgroundPulls) underway() []string {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var said []string
	for _, pull := range b.pulls {
		select {
		case <-pull.done:
		default:
			said = append(said, pull.now().sentence(pull.ref))
		}
	}
	slices.Sort(said)
	return said
}

// close ends what is under way and waits for it.
func (b *backgroundPulls) close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.all.Wait()
}

func (pull *backgroundPull) observe(far Pulled) {
	pull.mu.Lock()
	defer pull.mu.Unlock()
	pull.far = far
}

func (pull *backgroundPull) now() Pulled {
	pull.mu.Lock()
	defer pull.mu.Unlock()
	return pull.far
}

// notYet is the answer to who needs the image before it is there.
func (pull *backgroundPull) notYet(now time.Time) error {
	far := pull.now()
	return &contract.BackendError{
		Reason: far.sentence(pull.ref),
		Hint:   fmt.Sprintf("try again %s; the pull goes on meanwhile, and docker pull %s shows each layer of it", far.left(now.Sub(pull.began)), pull.ref),
		Err:    ErrPulling,
	}
}

// left says when the rest will be there, at the rate there was so far.
func (p Pulled) left(took time.Duration) string {
	const (
		telling = 3 * time.Second // what came before says nothing
		step    = 10 * time.Second
	)
	if p.Unpacking || p.Bytes <= 0 || p.Total <= p.Bytes || took < telling {
		return "in a moment"
	}
	rest := time.Duration(float64(took) * float64(p.Total-p.Bytes) / float64(p.Bytes))
	rest = rest.Truncate(step) + step
	if rest < 2*time.Minute {
		return fmt.Sprintf("in about %.0f s", rest.Seconds())
	}
	return fmt.Sprintf("in about %.0f min", rest.Minutes())
}

// fullName is what all ways to write an image's name have in common.
func fullName(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil { // an id, or what the daemon will refuse
		return ref
	}
	return reference.TagNameOnly(named).String()
}
