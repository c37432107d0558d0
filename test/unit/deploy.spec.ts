import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PrometheusRule, ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { CronJob, Job } from 'kubernetes-models/batch/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { declaredProperties } from '../../src/platform/declared-properties.js';

const PROJECT = join(import.meta.dirname, '../..');
const DEPLOY = join(PROJECT, 'deploy/kubernetes');
const read = (path: string) => readFileSync(join(PROJECT, path), 'utf8');
const dockerfile = read('Dockerfile');

// biome-ignore lint/suspicious/noExplicitAny: whatever a file says
type Document = Record<string, any>;

const KINDS: Record<string, new (document: never) => { validate(): void }> = {
  Deployment,
  HorizontalPodAutoscaler,
  CronJob,
  Job,
  NetworkPolicy,
  PodDisruptionBudget,
  Service,
  ServiceMonitor,
  PrometheusRule,
};

const files = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml'));
const documentsOf = (file: string): Document[] =>
  parseAllDocuments(readFileSync(join(DEPLOY, file), 'utf8')).map((document) => document.toJS());
const kustomizations = files.filter((file) => file.endsWith('kustomization.yaml'));
const documents = files
  .filter((file) => !file.endsWith('kustomization.yaml') && !file.endsWith('registry.yaml'))
  .flatMap((file) => documentsOf(file).map((document): [string, Document] => [`${file}: ${document.kind}`, document]));
const ofKind = (kind: string): Document[] => documents.map(([, each]) => each).filter((each) => each.kind === kind);
const one = (kind: string): Document => ofKind(kind)[0] as Document;
const podOf = (document: Document) => (document.spec.jobTemplate ?? document).spec.template;
const pods = ['Deployment', 'Job', 'CronJob'].map((kind): [string, Document] => [kind, podOf(one(kind))]);
const literals = kustomizations
  .flatMap(documentsOf)
  .flatMap(({ configMapGenerator = [] }) => configMapGenerator.flatMap((each: Document) => each.literals ?? []));

describe('the manifests', () => {
  it.each(documents)('%s is what Kubernetes takes', (_name, document) => {
    const Kind = KINDS[document.kind] as (typeof KINDS)[string];
    expect(() => new Kind(document as never).validate()).not.toThrow();
  });

  it('are each listed by a kustomization, and each that is listed is there', () => {
    const listed = kustomizations.flatMap((file) => {
      const folder = file.slice(0, -'kustomization.yaml'.length);
      const [{ resources = [], configMapGenerator = [] }] = documentsOf(file) as [Document];
      const named = [...resources, ...configMapGenerator.flatMap((each: Document) => each.files ?? [])];
      return named
        .filter((name: string) => name.endsWith('.yaml'))
        .map((name: string) => relative(DEPLOY, join(DEPLOY, folder, name)));
    });
    expect(listed.sort()).toEqual(files.filter((file) => !file.endsWith('kustomization.yaml')).sort());
  });

  it('set only variables that the service knows, and together a configuration that it takes', () => {
    const known = declaredProperties(Configuration);
    const names = literals.map((literal) => literal.split('=')[0]);
    for (const name of names) expect([...known, ...known.map((each) => `${each}_FILE`)]).toContain(name);
    const environment = Object.fromEntries(literals.map((literal) => literal.split(/=(.*)/s).slice(0, 2)));
    const mounted = { DATABASE_URL: 'mysql://u:p@db/auth', REDIS_URL: 'redis://r', ADMIN_TOKEN: 'x'.repeat(32) };
    for (const name of Object.keys(mounted)) expect(environment).toHaveProperty(`${name}_FILE`);
    const values = Object.entries(environment).filter(([name]) => !(name.replace(/_FILE$/, '') in mounted));
    expect(() => loadConfiguration({ ...Object.fromEntries(values), ...mounted })).not.toThrow();
  });

  it.each(pods)('%s mounts every file that a variable names', (kind, pod) => {
    const paths = pod.spec.containers[0].volumeMounts.map(({ mountPath }: Document) => mountPath);
    const wanted = literals.map((literal) => literal.split('=')[1]).filter((value) => value?.startsWith('/'));
    const needed = kind === 'Deployment' ? wanted : wanted.filter((path) => !path.includes('registry'));
    for (const path of needed) expect(paths).toContain(path.slice(0, path.lastIndexOf('/')));
    const volumes = pod.spec.volumes.map(({ name }: Document) => name);
    expect(pod.spec.containers[0].volumeMounts.map(({ name }: Document) => name).sort()).toEqual(volumes.sort());
  });

  it.each(pods)('%s runs the one image as the user it is made for, who may write nothing', (_kind, { spec }) => {
    const [container] = spec.containers;
    const [, user] = /^USER (\d+)/m.exec(dockerfile) ?? [];
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    const [{ images }] = documentsOf('base/kustomization.yaml') as [Document];
    expect(images).toEqual([{ name: container.image, newTag: JSON.parse(read('package.json')).version }]);
  });

  it('call commands that there are', () => {
    for (const kind of ['Job', 'CronJob']) {
      const [node, file, command] = podOf(one(kind)).spec.containers[0].command;
      expect([node, file]).toEqual(['node', 'dist/cli.js']);
      expect(read('src/cli/run-command-line.ts')).toMatch(new RegExp(`^  ${command} `, 'm'));
    }
  });

  it('name the ports and addresses of the service', () => {
    const { PORT, MANAGEMENT_PORT } = loadConfiguration({});
    const [container] = podOf(one('Deployment')).spec.containers;
    expect(container.ports).toEqual([
      { name: 'public', containerPort: PORT },
      { name: 'management', containerPort: MANAGEMENT_PORT },
    ]);
    expect(dockerfile).toContain(`EXPOSE ${PORT} ${MANAGEMENT_PORT}`);
    const names = container.ports.map(({ name }: Document) => name);
    const used = ofKind('Service').flatMap(({ spec }) => spec.ports.map(({ targetPort }: Document) => targetPort));
    used.push(
      ...one('NetworkPolicy').spec.ingress.flatMap(({ ports }: Document) => ports.map(({ port }: Document) => port)),
    );
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, port } = container[probe].httpGet;
      expect(port).toBe('management');
      expect(read('src/platform/health/health.controller.ts')).toContain(`@Get('${path.replace('/health/', '')}')`);
    }
    for (const name of used) expect(names).toContain(name);
    expect(one('ServiceMonitor').spec.endpoints).toMatchObject([{ port: 'management', path: '/metrics' }]);
  });

  it('select the pods and services that there are', () => {
    const { labels } = podOf(one('Deployment')).metadata;
    const { spec } = one('Deployment');
    expect(spec.selector.matchLabels).toEqual(labels);
    for (const service of ofKind('Service')) expect(service.spec.selector).toEqual(labels);
    expect(one('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels);
    expect(one('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(one('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(one('Deployment').metadata.name);
    const monitored = one('ServiceMonitor').spec.selector.matchLabels;
    expect(
      ofKind('Service').filter((each) =>
        Object.keys(monitored).every((key) => each.metadata.labels[key] === monitored[key]),
      ),
    ).toHaveLength(1);
    for (const kind of ['Job', 'CronJob']) expect(podOf(one(kind)).metadata.labels).not.toEqual(labels);
  });

  it('give a pod longer to end than it takes', () => {
    const [, longest] = /STOP_TIMEOUT_MS = ([\d_]+)/.exec(read('src/run-service.ts')) ?? [];
    const pod = podOf(one('Deployment')).spec;
    const [, pause] = /undefined, (\d+)/.exec(pod.containers[0].lifecycle.preStop.exec.command[2]) ?? [];
    const stop = (Number(longest?.replaceAll('_', '')) + Number(pause)) / 1000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(stop);
  });

  it('hold no secret', () => {
    for (const file of files) expect(readFileSync(join(DEPLOY, file), 'utf8')).not.toMatch(/kind: Secret$/m);
  });
});

describe('the alerts', () => {
  const rules: Document[] = one('PrometheusRule').spec.groups.flatMap((group: Document) => group.rules);

  it.each(rules.map(({ alert, expr }) => [alert, expr]))('%s asks for metrics that the service has', (_alert, expr) => {
    const sources = readdirSync(join(PROJECT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => read(join('src', name)))
      .join('\n');
    for (const [name] of expr.matchAll(/\b(?:cas|http|nodejs)_\w+/g)) {
      const bare = name.replace(/_bucket$/, '').replace(/^cas_/, '');
      if (!name.startsWith('nodejs_')) expect(sources).toMatch(new RegExp(`['\`](cas_|cas_database_)?${bare}['\`]`));
    }
  });

  it('lead to a section of the runbook each', () => {
    const headings = read('docs/operations.md').match(/^#+ .*$/gm) ?? [];
    const anchors = headings.map(
      (heading) => `docs/operations.md#${heading.replace(/^#+ /, '').toLowerCase().replaceAll(' ', '-')}`,
    );
    for (const { annotations } of rules) expect(anchors).toContain(annotations.runbook_url);
  });
});
