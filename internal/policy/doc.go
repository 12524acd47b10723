// Package policy reads who must sign what, and rules by it.
package policy
