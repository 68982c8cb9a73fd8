// Package crdb stands in for the CockroachDB helper of 2018, which no proxy has: the storage here is in memory.
package crdb

import "database/sql"

// ExecuteTx runs fn in a transaction, without retries.
func ExecuteTx(db *sql.DB, fn func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
