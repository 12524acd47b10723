package doctor

// ManifestName is the Slack manifest that `bot init` writes beside the
// configuration, and that a check looks for there.
const ManifestName = "slack-manifest.yaml"
