package live

// RecheckEvery is the interval in which streams check their sessions.
const RecheckEvery = recheckEvery

// Notices are the notices of the pages.
var Notices = notices
