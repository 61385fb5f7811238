package manage

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/web/manage/jsonschema"
)

const documentPath = Prefix + "openapi.json"

// apiVersion is the version of the API and its document.
const apiVersion = "1.0.0"

// sendDocument serves the OpenAPI document, which is public because clients need it before they
// have a token.
func (a *API) sendDocument(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "public, max-age=300")
	h.Set("Access-Control-Allow-Origin", "*")
	return write(c, http.StatusOK, "application/json", a.document())
}

// StrictDocument returns the OpenAPI document for tests: it allows no unknown members in answers.
// Clients must allow them, because later versions may add members.
func (a *API) StrictDocument() []byte {
	return newDocument(a.routes, a.publicURL, jsonschema.RefuseUnknown)
}

// schema is a JSON Schema.
type schema = jsonschema.Schema

// types adds operations to the schemas of their types.
type types struct{ *jsonschema.Types }

// newDocument generates the OpenAPI 3.1 document from the route table.
//
// https://spec.openapis.org/oas/v3.1.0
func newDocument(routes []route, publicURL string, u jsonschema.UnknownMembers) []byte {
	s := types{jsonschema.New(u, "Problem", problemSchema)}
	paths := map[string]map[string]any{}
	for i := range routes {
		r := &routes[i]
		if paths[r.fullPath()] == nil {
			paths[r.fullPath()] = map[string]any{}
		}
		paths[r.fullPath()][strings.ToLower(r.method)] = s.operation(r)
	}
	document := schema{
		"openapi": "3.1.0",
		"info": schema{
			"title": "Proofline management API", "version": apiVersion,
			"description": "Everything that organizers do with rooms. https://github.com/proofline/proofline/blob/main/web/API.md explains it.",
			"license":     schema{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers": []any{schema{"url": publicURL + "/"}},
		"tags":    tags(routes),
		"paths":   paths,
		"components": schema{
			"schemas": s.Named(),
			"securitySchemes": schema{"token": schema{"type": "http", "scheme": "bearer",
				"description": "A token of the organization, or the server's own token."}},
			"parameters": sharedParameters,
			"responses": schema{"Problem": schema{
				"description": "A problem document; https://github.com/proofline/proofline/blob/main/web/PROBLEMS.md describes the types.",
				"content": schema{"application/problem+json": schema{
					"schema": schema{"$ref": "#/components/schemas/Problem"}}},
			}},
		},
		"security": []any{schema{"token": []string{}}},
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic(err) // made of constants, cannot fail
	}
	return text
}

// tags returns the areas of the API, in the order of the routes.
func tags(routes []route) []any {
	var names []string
	for _, r := range routes {
		if !slices.Contains(names, r.tag) {
			names = append(names, r.tag)
		}
	}
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = schema{"name": name}
	}
	return list
}

// problemSchema is the schema of errors (https://www.rfc-editor.org/rfc/rfc9457).
var problemSchema = schema{
	"type":     "object",
	"required": []string{"type", "title", "status", "instance", "request_id"},
	"properties": schema{
		"type":       schema{"type": "string", "description": "A URL in PROBLEMS.md, or about:blank."},
		"title":      schema{"type": "string"},
		"status":     schema{"type": "integer"},
		"detail":     schema{"type": "string"},
		"instance":   schema{"type": "string", "description": "Path of the request."},
		"request_id": schema{"type": "string", "description": "ID of the request in the server's log."},
		"errors": schema{"type": "array", "items": schema{
			"type": "object", "required": []string{"field", "detail"},
			"properties": schema{"field": schema{"type": "string",
				"description": "Invalid field; empty: the body as a whole."}, "detail": schema{"type": "string"}},
		}},
	},
}

// sharedParameters are headers that many requests accept.
var sharedParameters = schema{
	"Organization": schema{
		"name": OrganizationHeader, "in": "header", "schema": schema{"type": "string"},
		"description": "Slug of the organization to act in. Only the server's token has a choice; without the header it acts in main.",
	},
	"Key": schema{
		"name": KeyHeader, "in": "header", "schema": schema{"type": "string", "maxLength": 202},
		"description": "A unique text, preferably a UUID. A request repeated with the same key within 24 hours is performed once and gets the same answer.",
	},
	"IfMatch": schema{
		"name": "If-Match", "in": "header", "schema": schema{"type": "string"},
		"description": "ETag of the version to change. 412: it has changed since.",
	},
	"IfNoneMatch": schema{
		"name": "If-None-Match", "in": "header", "schema": schema{"type": "string"},
		"description": "ETag of the client's version. 304: it has not changed.",
	},
}

func (s types) operation(r *route) schema {
	out := schema{
		"operationId": r.name, "tags": []string{r.tag}, "summary": r.summary, "parameters": r.documentedParameters(),
		"responses": schema{strconv.Itoa(r.success()): s.success(r),
			"default": schema{"$ref": "#/components/responses/Problem"}},
		"x-scope": r.scope.String(),
	}
	out["description"] = strings.TrimSpace(r.more + "\n\n" + r.needs())
	if r.cached {
		out["responses"].(schema)[strconv.Itoa(http.StatusNotModified)] = schema{
			"description": "Not modified since the version with this ETag."}
	}
	if r.in != nil {
		content := schema{"schema": s.Of(reflect.TypeOf(r.in), jsonschema.InRequest)}
		if r.example != "" {
			content["example"] = json.RawMessage(r.example)
		}
		out["requestBody"] = schema{"required": !r.blank, "content": schema{"application/json": content}}
	}
	return out
}

// needs describes the required scope in words.
func (r *route) needs() string {
	if r.server {
		return "Needs the server's own token."
	}
	if r.scope == account.Read {
		return "Needs the scope read, or operate or admin, which imply it."
	}
	return fmt.Sprintf("Needs the scope %s, or one that implies it.", r.scope)
}

func (r *route) success() int { return reply{}.statusOf(r) }

func (s types) success(r *route) schema {
	out := schema{"description": http.StatusText(r.success())}
	if r.out != nil {
		content := schema{"application/json": schema{"schema": s.Of(reflect.TypeOf(r.out), jsonschema.InAnswer)}}
		if r.csv {
			content["text/csv"] = schema{"schema": schema{"type": "string"}}
		}
		out["content"] = content
	}
	if r.text {
		out["content"] = schema{"text/plain": schema{"schema": schema{"type": "string"}}}
	}
	headers := schema{}
	text := func(name, about string) {
		headers[name] = schema{"description": about, "schema": schema{"type": "string"}}
	}
	if r.tagged {
		text("ETag", "Changes whenever the object is changed.")
	}
	if r.key == keyKept {
		text(ReplayedHeader, "true if this is the stored answer to an earlier request.")
	}
	if slices.ContainsFunc(r.query, func(p parameter) bool { return p.name == "cursor" }) {
		text("Link", `The next page, rel="next".`)
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	return out
}

// pathParameters describes the path parameters.
var pathParameters = map[string]schema{
	"slug": {"description": "Slug of the room.", "schema": schema{"type": "string"}},
	"ticket": {"description": "A ticket: a UUID of version 8.",
		"schema": schema{"type": "string", "format": "uuid"}},
	"rehearsal":    {"description": "Slug of the copy.", "schema": schema{"type": "string"}},
	"site":         {"description": "Name of the site.", "schema": schema{"type": "string"}},
	"version":      {"description": "Version of the rules.", "schema": schema{"type": "integer", "minimum": 1}},
	"host":         {"description": "A host name.", "schema": schema{"type": "string"}},
	"organization": {"description": "Slug of the organization.", "schema": schema{"type": "string"}},
}

func (r *route) documentedParameters() []any {
	list := []any{}
	for _, name := range r.parameters() {
		p := schema{"name": name, "in": "path", "required": true, "schema": schema{"type": "string", "format": "uuid"}}
		maps.Copy(p, pathParameters[name])
		list = append(list, p)
	}
	for _, q := range r.query {
		list = append(list, schema{"name": q.name, "in": "query", "description": q.about, "schema": q.schema,
			"required": q.needed})
	}
	shared := []string{"Organization"}
	if r.key != keyIgnored {
		shared = append(shared, "Key")
	}
	if r.matches {
		shared = append(shared, "IfMatch")
	}
	if r.cached {
		shared = append(shared, "IfNoneMatch")
	}
	for _, name := range shared {
		list = append(list, schema{"$ref": "#/components/parameters/" + name})
	}
	return list
}
