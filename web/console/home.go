package console

import "github.com/labstack/echo/v4"

// homeRoutes are those of the first page.
func (c *Console) homeRoutes() []route {
	return []route{
		{GET, "", SignedIn, func(x *request) error { return x.done("/rooms", "") }},
		{GET, "/", SignedIn, func(x *request) error { return x.done("/rooms", "") }},
		{GET, "/guide", SignedIn, func(x *request) error { return x.page("guide", nil) }},
		{GET, "/*", SignedIn, func(*request) error { return echo.ErrNotFound }},
	}
}
