package wire

import (
	"github.com/proofline/proofline/console/webhook"
)

// EndpointList lists webhooks.
type EndpointList struct {
	Endpoints []webhook.Endpoint `json:"endpoints"`
}

// MadeEndpoint is a new endpoint with its secret.
type MadeEndpoint struct {
	webhook.Endpoint
	Secret string `json:"secret" doc:"Secret that signs its deliveries (Standard Webhooks). It is shown once."`
}

// Secret is the new secret of a webhook.
type Secret struct {
	Secret string `json:"secret" doc:"Secret that signs deliveries from now on; the previous one also signs for 24 hours. It is shown once."`
}

// DeliveryList is a page of the delivery log.
type DeliveryList struct {
	Deliveries []webhook.Delivery `json:"deliveries"`
	Next       *string            `json:"next" doc:"Cursor of the next page; null on the last page."`
}
