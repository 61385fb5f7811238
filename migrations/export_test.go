package migrations

// UpFS is Up with other migrations.
var UpFS = up

// LockID is the SQL expression of the lock.
const LockID = lockID
