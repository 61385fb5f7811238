package manage

import (
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/wire"
)

func newHost(h account.Host) wire.Host {
	out := wire.Host{Host: h.Host, Record: h.Record, Value: h.Token, Verified: nil}
	if h.Verified != nil {
		verified := h.Verified.UTC()
		out.Verified = &verified
	}
	return out
}

// hosts serves the custom hosts of an organization.
type hosts struct{ hosts *account.Hosts }

func (a hosts) routes() []route {
	const tag = "hosts"
	return []route{
		{
			method: http.MethodGet, path: "hosts", scope: account.Read, name: "listHosts", tag: tag,
			summary: "List the custom hosts of the organization", out: wire.HostList{}, do: a.listHosts,
		},
		{
			method: http.MethodPost, path: "hosts", scope: account.Admin, name: "addHost", tag: tag,
			summary: "Claim a custom host", more: "Rooms can be published under it once its TXT record is found.",
			in: wire.HostInput{}, example: `{"host": "tickets.example.com"}`, out: wire.Host{},
			status: http.StatusCreated, key: keyKept, do: a.addHost,
		},
		{
			method: http.MethodPost, path: "hosts/{host}/verify", scope: account.Admin, name: "verifyHost", tag: tag,
			summary: "Look for the TXT record of a host", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.hosts.Verify(c, c.actor, c.param("host")) },
		},
		{
			method: http.MethodDelete, path: "hosts/{host}", scope: account.Admin, name: "removeHost", tag: tag,
			summary: "Release a custom host", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.hosts.Remove(c, c.actor, c.param("host")) },
		},
	}
}

func (a hosts) listHosts(c *call) (reply, error) {
	list, err := a.hosts.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := wire.HostList{Hosts: make([]wire.Host, len(list))}
	for i, h := range list {
		out.Hosts[i] = newHost(h)
	}
	return answer(out)
}

func (a hosts) addHost(c *call) (reply, error) {
	in, err := decode[wire.HostInput](c)
	if err != nil {
		return reply{}, err
	}
	h, err := a.hosts.Add(c, c.actor, in.Host)
	if err != nil {
		return reply{}, err
	}
	return answer(newHost(h))
}
