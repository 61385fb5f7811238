package wire

// Problem is the body of every error (https://www.rfc-editor.org/rfc/rfc9457). PROBLEMS.md describes the types.
type Problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail,omitempty"`
	Instance  string       `json:"instance"` // path of the request
	RequestID string       `json:"request_id"`
	Errors    []FieldError `json:"errors,omitempty"` // one per invalid field
	// Methods are the methods of credentials that are missing, or at fault.
	Methods []string `json:"methods,omitempty"`
	// Statement is the statement, signed with the room's key, of the operator who ended the room
	// because its records are lost.
	Statement string `json:"statement,omitempty"`
}

// FieldError is one problem with the input.
type FieldError struct {
	Field  string `json:"field"` // empty: the body as a whole
	Detail string `json:"detail"`
}
