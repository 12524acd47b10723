package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/doctor"
	"github.com/countersign/countersign/internal/state"
)

// object is as much of an object of Kubernetes as the test looks at.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		AccessModes []string `yaml:"accessModes"`
		Replicas    int
		Template    struct{ Spec pod }
	}
}

type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type pod struct {
	TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               struct {
		RunAsUser int `yaml:"runAsUser"`
		FSGroup   int `yaml:"fsGroup"`
	} `yaml:"securityContext"`
	Containers []struct {
		Image        string
		Args         []string
		VolumeMounts []mount `yaml:"volumeMounts"`
	}
	Volumes []struct {
		Name                  string
		ConfigMap             struct{ Name string } `yaml:"configMap"`
		PersistentVolumeClaim struct {
			ClaimName string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
}

func kubernetes(t *testing.T) map[string]object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "k8s", "countersign.yaml"))
	require.NoError(t, err)
	all := map[string]object{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o object
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		require.NotContains(t, all, o.Kind+"/"+o.Metadata.Name)
		all[o.Kind+"/"+o.Metadata.Name] = o
	}
	return all
}

// What the manifest deploys is a bot with an agent that can do something: its
// folder is a volume that every replica sees and may write.
func TestTheClusterRunsAnAgentWithTools(t *testing.T) {
	t.Parallel()
	all := kubernetes(t)
	deployment := all["Deployment/countersign"]
	p := deployment.Spec.Template.Spec
	require.Len(t, p.Containers, 1)
	bot := p.Containers[0]
	mounted := map[string]string{} // the volume at a path
	for _, m := range bot.VolumeMounts {
		mounted[m.MountPath] = m.Name
	}
	source := func(mount string) (configMap, claim string) {
		for _, v := range p.Volumes {
			if v.Name == mounted[mount] {
				return v.ConfigMap.Name, v.PersistentVolumeClaim.ClaimName
			}
		}
		return "", ""
	}
	require.Equal(t, []string{"serve", "--config"}, bot.Args[:2])
	configMap, _ := source(path.Dir(bot.Args[2]))
	c, problems := config.Decode([]byte(all["ConfigMap/"+configMap].Data[path.Base(bot.Args[2])]))
	require.Empty(t, problems)
	require.NoError(t, c.Check())
	policyMap, _ := source(c.Policy)
	require.NotEmpty(t, all["ConfigMap/"+policyMap].Data)

	for _, a := range c.Agents {
		require.NotEmpty(t, a.Files, "without a folder %s can only talk", a.Name)
		_, claim := source(a.Files)
		require.NotEmpty(t, claim, "%s is on no volume", a.Files)
		require.Contains(t, all["PersistentVolumeClaim/"+claim].Spec.AccessModes, "ReadWriteMany", "%d replicas share it", deployment.Spec.Replicas)
		at := slices.IndexFunc(bot.VolumeMounts, func(m mount) bool {
			return m.MountPath == a.Files
		})
		require.False(t, bot.VolumeMounts[at].ReadOnly)
		require.False(t, strings.HasPrefix(bot.Args[2], a.Files) || strings.HasPrefix(c.Policy, a.Files), "the agent must not reach its own rules")
	}
	require.Equal(t, p.SecurityContext.RunAsUser, p.SecurityContext.FSGroup, "the bot may write to the volume")
	dockerfile, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(dockerfile), "USER 65532:65532")
	require.Contains(t, string(dockerfile), "\nARG VERSION\n", "the image has no history of the repository, so the version must be said")
	require.Contains(t, string(dockerfile), "-X main.version=$VERSION")
	require.Equal(t, 65532, p.SecurityContext.RunAsUser)
	require.Greater(t, p.TerminationGracePeriodSeconds, int((shutdownRequests + shutdownWork + shutdownWords).Seconds()))
}

// Countersign has no public image. The name in the manifest is one that the
// operator must replace: as it is, it can be pulled from nowhere, and never
// from someone else's repository of this name.
func TestTheOperatorNamesTheImageOfTheCluster(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "k8s", "kustomization.yaml"))
	require.NoError(t, err)
	var k struct {
		Resources []string
		Images    []struct {
			Name    string
			NewName string `yaml:"newName"`
			NewTag  string `yaml:"newTag"`
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &k))
	require.Equal(t, []string{"countersign.yaml"}, k.Resources)
	require.Len(t, k.Images, 1)
	for _, c := range kubernetes(t)["Deployment/countersign"].Spec.Template.Spec.Containers {
		require.Equal(t, k.Images[0].Name, c.Image)
	}
	registry, _, _ := strings.Cut(k.Images[0].NewName, "/")
	require.True(t, strings.HasSuffix(registry, ".example.com"), "a name that nobody can own")
	require.Contains(t, k.Images[0].NewTag, "replace")
}

// The bot does not start without a Redis, so whoever follows the page has it by then.
func TestTheRedisOfTheClusterIsAppliedFirst(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "kubectl apply -k manifests/k8s/redis\nkubectl apply -k manifests/k8s\n")
}

// The Redis that the files for a cluster set up is one that the bot starts on: its
// settings keep what redis.durability promises.
func TestTheRedisOfTheClusterKeepsWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "manifests", "k8s", "redis", "redis.yaml"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n---\n")
	var o object
	require.NoError(t, yaml.Unmarshal([]byte(first), &o))
	dir := t.TempDir()
	password := filepath.Join(dir, "password.conf")
	require.NoError(t, os.WriteFile(password, []byte("requirepass hunter22\n"), 0o600))
	conf := strings.NewReplacer("/run/redis/password.conf", password, "dir /data", "dir "+dir, "maxmemory 2gb", "maxmemory 64mb").Replace(o.Data["redis.conf"])
	socket := filepath.Join(dir, "s")
	conf += "\nport 0\nunixsocket " + socket + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis.conf"), []byte(conf), 0o600))
	server := exec.CommandContext(t.Context(), "redis-server", filepath.Join(dir, "redis.conf"))
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store, err := state.Open(ctx, state.Options{URL: "unix://:hunter22@" + socket})
	require.NoError(t, err)
	servers, err := store.Servers(ctx)
	require.NoError(t, errors.Join(err, store.Close()))
	for _, f := range doctor.JudgeRedis(config.Redis{}, servers) {
		require.Contains(t, []doctor.Mark{doctor.IsFine}, f.Mark, f.Text)
	}
}
