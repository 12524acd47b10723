// Package respond answers the person who did something: it tells them, opens views
// for them, puts errors into words, and does what may follow once their request
// is answered.
package respond
