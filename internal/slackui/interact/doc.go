// Package interact handles what people do in Slack: buttons, forms, shortcuts,
// their Home, and mentions.
package interact
