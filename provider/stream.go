package provider

import "context"

// ExecPrefix is [contract.Environment.ExecPrefix] for a sandbox by its address, which is started when it is stopped. It does not connect,
// which is most of the time that [Provider.Attach] takes: the argv depends on the container alone.
func (p *Provider) ExecPrefix(ctx context.Context, address, user string, interactive bool) ([]string, error) {
	b, err := p.wake(ctx, address)
	if err != nil {
		return nil, err
	}
	return p.prefix(b.containerID, b.id).Argv(user, interactive)
}
