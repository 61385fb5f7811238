package pgwebhook

import "github.com/proofline/proofline/internal/personal"

// Personal is the personal data of the tables.
var Personal = []personal.Rule{
	{
		Table: "alert_settings", Columns: []string{"emails"}, Holds: "mail addresses that get an organization's alerts",
		Until: "until the organization removes them",
	},
	{
		Table: "webhook_endpoints", Columns: []string{"url", "description"},
		Holds: "where an organization wants events, and its note about that", Until: "until the organization removes it",
	},
	{
		Table: "delivery_attempts", Columns: []string{"error", "response"},
		Holds: "what a mail server or an endpoint answered", Until: "as the delivery",
		Due: `exists (select from deliveries d where (d.org_id, d.delivery_id) =
			(delivery_attempts.org_id, delivery_attempts.delivery_id) and d.created_at < @since and d.state <> 'waiting')`,
	},
	{
		Table: "deliveries", Columns: []string{"recipient", "payload"}, Holds: "mails and webhooks, and whom they were sent to",
		Until: "from the event, and at most 30 days",
		Due: `created_at < @since and state <> 'waiting' and not exists (select from delivery_attempts a
			where (a.org_id, a.delivery_id) = (deliveries.org_id, deliveries.delivery_id))`,
	},
}
