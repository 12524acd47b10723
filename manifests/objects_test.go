package manifests_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// objects are those of a folder of Kubernetes files, decoded as the API server
// does with strict validation: an unknown or repeated field is an error there.
func objects(t *testing.T, folder string) map[string]any {
	t.Helper()
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
		Images     []struct {
			Name    string `json:"name"`
			NewName string `json:"newName"`
			NewTag  string `json:"newTag"`
		} `json:"images"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, &k))
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(k.Resources)+1, "every file is a resource")
	all := map[string]any{}
	for _, file := range k.Resources {
		text, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var is struct {
				Kind     string
				Metadata struct{ Name string }
			}
			require.NoError(t, yaml.Unmarshal([]byte(document), &is))
			empty, known := map[string]any{
				"ConfigMap": &corev1.ConfigMap{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaim{}, "Service": &corev1.Service{},
				"ServiceAccount": &corev1.ServiceAccount{}, "Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{},
				"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "NetworkPolicy": &networkingv1.NetworkPolicy{},
			}[is.Kind]
			require.True(t, known, "kind %s", is.Kind)
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), empty), "%s %s", is.Kind, is.Metadata.Name)
			require.NotContains(t, all, is.Kind+"/"+is.Metadata.Name)
			all[is.Kind+"/"+is.Metadata.Name] = empty
		}
	}
	return all
}

func object[T any](t *testing.T, all map[string]any, name string) T {
	t.Helper()
	o, ok := all[name].(*T)
	require.True(t, ok, name)
	return *o
}

// requireLocked holds what a container of ours may do.
func requireLocked(t *testing.T, p corev1.PodSpec) {
	t.Helper()
	require.False(t, *p.AutomountServiceAccountToken)
	require.True(t, *p.SecurityContext.RunAsNonRoot)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, p.SecurityContext.SeccompProfile.Type)
	mounts := map[string]bool{}
	for _, v := range p.Volumes {
		mounts[v.Name] = true
	}
	for _, c := range append(p.InitContainers, p.Containers...) {
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, c.Name)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, c.Name)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
		for _, m := range c.VolumeMounts {
			require.True(t, mounts[m.Name] || m.Name == "data", "%s mounts %s", c.Name, m.Name)
		}
	}
}

// While a node is drained or a version replaced, somebody answers Slack.
func TestSomebodyAnswersWhileReplicasAreReplaced(t *testing.T) {
	all := objects(t, "k8s")
	d := object[appsv1.Deployment](t, all, "Deployment/countersign")
	require.GreaterOrEqual(t, *d.Spec.Replicas, int32(2))
	require.Zero(t, d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue())
	budget := object[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget/countersign")
	require.Less(t, budget.Spec.MaxUnavailable.IntValue(), int(*d.Spec.Replicas))
	require.Equal(t, policyv1.AlwaysAllow, *budget.Spec.UnhealthyPodEvictionPolicy, "a drain does not wait for replicas that are not ready")
	labels := d.Spec.Template.Labels
	require.Equal(t, labels, budget.Spec.Selector.MatchLabels)
	require.Equal(t, labels, d.Spec.Selector.MatchLabels)
	require.Equal(t, labels, object[corev1.Service](t, all, "Service/countersign").Spec.Selector)
	p := d.Spec.Template.Spec
	requireLocked(t, p)
	bot := p.Containers[0]
	require.Equal(t, "/readyz", bot.ReadinessProbe.HTTPGet.Path)
	require.Equal(t, "/healthz", bot.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/healthz", bot.StartupProbe.HTTPGet.Path)
	require.Greater(t, *p.TerminationGracePeriodSeconds, bot.Lifecycle.PreStop.Sleep.Seconds+30)
}

// The limit of Go's memory is below that of the container, which kills the process.
func TestTheMemoryLimitOfGoIsBelowThatOfTheContainer(t *testing.T) {
	bot := object[appsv1.Deployment](t, objects(t, "k8s"), "Deployment/countersign").Spec.Template.Spec.Containers[0]
	at := slices.IndexFunc(bot.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	require.GreaterOrEqual(t, at, 0)
	soft, err := strconv.ParseInt(strings.TrimSuffix(bot.Env[at].Value, "MiB"), 10, 64)
	require.NoError(t, err)
	hard := bot.Resources.Limits.Memory().Value()
	require.Less(t, soft<<20, hard)
	require.Greater(t, soft<<20, hard*8/10)
}

// No secret is in the environment, where every child process and crash report has
// it: each is a file that the bot can read.
func TestSecretsAreMountedAsFiles(t *testing.T) {
	p := object[appsv1.Deployment](t, objects(t, "k8s"), "Deployment/countersign").Spec.Template.Spec
	mounts := map[string]string{}
	for _, m := range p.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	require.Empty(t, p.Containers[0].EnvFrom)
	named := 0
	for _, e := range p.Containers[0].Env {
		require.Nil(t, e.ValueFrom)
		if name, ok := strings.CutSuffix(e.Name, "_FILE"); ok {
			named++
			require.Equal(t, mounts["secrets"]+"/"+name, e.Value)
		}
	}
	require.Equal(t, 4, named)
	for _, v := range p.Volumes {
		if v.Secret != nil {
			require.Equal(t, int32(0o440), *v.Secret.DefaultMode)
			require.NotNil(t, p.SecurityContext.FSGroup, "which may read it")
		}
	}
}

// Only the bot reaches Redis, and only Prometheus the metrics.
func TestWhoReachesWhat(t *testing.T) {
	bot, redis := objects(t, "k8s"), objects(t, "k8s/redis")
	ports := map[string]int32{}
	d := object[appsv1.Deployment](t, bot, "Deployment/countersign")
	for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	require.Contains(t, object[corev1.ConfigMap](t, bot, "ConfigMap/countersign").Data["config.yaml"], "metrics: {listen: \":9090\"}")
	require.Equal(t, map[string]int32{"http": 8080, "metrics": 9090}, ports)
	require.Equal(t, "9090", d.Spec.Template.Annotations["prometheus.io/port"])
	for _, p := range object[corev1.Service](t, bot, "Service/countersign").Spec.Ports {
		require.Equal(t, "http", p.TargetPort.String(), "an ingress must not reach the metrics")
	}
	n := object[networkingv1.NetworkPolicy](t, bot, "NetworkPolicy/countersign")
	require.Equal(t, d.Spec.Template.Labels, n.Spec.PodSelector.MatchLabels)
	for _, in := range n.Spec.Ingress {
		if in.Ports[0].Port.String() == "metrics" {
			require.NotEmpty(t, in.From)
		}
	}
	s := object[appsv1.StatefulSet](t, redis, "StatefulSet/countersign-redis")
	requireLocked(t, s.Spec.Template.Spec)
	require.Equal(t, int32(1), *s.Spec.Replicas, "two would be two stores")
	r := object[networkingv1.NetworkPolicy](t, redis, "NetworkPolicy/countersign-redis")
	require.Equal(t, s.Spec.Template.Labels, r.Spec.PodSelector.MatchLabels)
	require.Len(t, r.Spec.Ingress, 1)
	require.Equal(t, d.Spec.Template.Labels, r.Spec.Ingress[0].From[0].PodSelector.MatchLabels)
}
