// Package story holds the demo's story in a real browser: story.mjs drives
// the page in headless Chromium, as people would, and chat.mjs the chat beside it.
package story
