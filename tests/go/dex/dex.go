// Package dex pins what a Dex of 2018 is built from: its last release that is a Go module's version.
package dex

import _ "github.com/dexidp/dex/server"
