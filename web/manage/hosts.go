package manage

import (
	"net/http"
	"time"

	"github.com/proofline/proofline/console/account"
)

// hostJSON is a custom host that the organization has claimed.
type hostJSON struct {
	Host     string     `json:"host"`
	Record   string     `json:"record" doc:"Name of the TXT record that proves ownership."`
	Value    string     `json:"value" doc:"Content of the record."`
	Verified *time.Time `json:"verified" doc:"Time of verification. Null: not verified, or another organization has verified the host since."`
}

func newHostJSON(h account.Host) hostJSON {
	out := hostJSON{h.Host, h.Record, h.Token, nil}
	if h.Verified != nil {
		verified := h.Verified.UTC()
		out.Verified = &verified
	}
	return out
}

type hostList struct {
	Hosts []hostJSON `json:"hosts"`
}

type hostInput struct {
	Host string `json:"host" need:"true" doc:"A host name, without port."`
}

func (a *API) hostRoutes() []route {
	const tag = "hosts"
	return []route{
		{
			method: http.MethodGet, path: "hosts", scope: account.Read, name: "listHosts", tag: tag,
			summary: "List the custom hosts of the organization", out: hostList{}, do: a.listHosts,
		},
		{
			method: http.MethodPost, path: "hosts", scope: account.Admin, name: "addHost", tag: tag,
			summary: "Claim a custom host", more: "Rooms can be published under it once its TXT record is found.",
			in: hostInput{}, example: `{"host": "tickets.example.com"}`, out: hostJSON{}, status: http.StatusCreated, key: keyKept, do: a.addHost,
		},
		{
			method: http.MethodPost, path: "hosts/{host}/verify", scope: account.Admin, name: "verifyHost", tag: tag,
			summary: "Look for the TXT record of a host", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Accounts.Hosts.Verify(c, c.actor, c.param("host")) },
		},
		{
			method: http.MethodDelete, path: "hosts/{host}", scope: account.Admin, name: "removeHost", tag: tag,
			summary: "Release a custom host", status: http.StatusNoContent,
			do: func(c *call) (reply, error) { return reply{}, a.Accounts.Hosts.Remove(c, c.actor, c.param("host")) },
		},
	}
}

func (a *API) listHosts(c *call) (reply, error) {
	list, err := a.Accounts.Hosts.List(c, c.actor)
	if err != nil {
		return reply{}, err
	}
	out := hostList{Hosts: make([]hostJSON, len(list))}
	for i, h := range list {
		out.Hosts[i] = newHostJSON(h)
	}
	return answer(out)
}

func (a *API) addHost(c *call) (reply, error) {
	in, err := decode[hostInput](c)
	if err != nil {
		return reply{}, err
	}
	h, err := a.Accounts.Hosts.Add(c, c.actor, in.Host)
	if err != nil {
		return reply{}, err
	}
	return answer(newHostJSON(h))
}
