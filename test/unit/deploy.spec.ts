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

// biome-ignore lint/suspicious/noExplicitAny: a manifest may have any shape
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
const documentsOfKind = (kind: string): Document[] =>
  documents.map(([, each]) => each).filter((each) => each.kind === kind);
const documentOfKind = (kind: string): Document => documentsOfKind(kind)[0] as Document;
const podOf = (document: Document) => (document.spec.jobTemplate ?? document).spec.template;
const pods = ['Deployment', 'Job', 'CronJob'].map((kind): [string, Document] => [kind, podOf(documentOfKind(kind))]);
const literals = kustomizations
  .flatMap(documentsOf)
  .flatMap(({ configMapGenerator = [] }) => configMapGenerator.flatMap((each: Document) => each.literals ?? []));

describe('the Kubernetes manifests', () => {
  it.each(documents)('are valid for Kubernetes: %s', (_name, document) => {
    const Kind = KINDS[document.kind] as (typeof KINDS)[string];
    expect(() => new Kind(document as never).validate()).not.toThrow();
  });

  it('are all listed by a kustomization, and every listed file exists', () => {
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

  it('set only variables that the service knows, with values that it accepts', () => {
    const known = declaredProperties(Configuration);
    const names = literals.map((literal) => literal.split('=')[0]);
    for (const name of names) expect([...known, ...known.map((each) => `${each}_FILE`)]).toContain(name);
    const environment = Object.fromEntries(literals.map((literal) => literal.split(/=(.*)/s).slice(0, 2)));
    const mounted = { DATABASE_URL: 'mysql://u:p@db/auth', REDIS_URL: 'redis://r', ADMIN_TOKEN: 'x'.repeat(32) };
    for (const name of Object.keys(mounted)) expect(environment).toHaveProperty(`${name}_FILE`);
    const values = Object.entries(environment).filter(([name]) => !(name.replace(/_FILE$/, '') in mounted));
    expect(() => loadConfiguration({ ...Object.fromEntries(values), ...mounted })).not.toThrow();
  });

  it.each(pods)('mount every file that a variable names: %s', (kind, pod) => {
    const paths = pod.spec.containers[0].volumeMounts.map(({ mountPath }: Document) => mountPath);
    const namedPaths = literals.map((literal) => literal.split('=')[1]).filter((value) => value?.startsWith('/'));
    const needed = kind === 'Deployment' ? namedPaths : namedPaths.filter((path) => !path.includes('registry'));
    for (const path of needed) expect(paths).toContain(path.slice(0, path.lastIndexOf('/')));
    const volumes = pod.spec.volumes.map(({ name }: Document) => name);
    expect(pod.spec.containers[0].volumeMounts.map(({ name }: Document) => name).sort()).toEqual(volumes.sort());
  });

  it.each(pods)('run the image as its unprivileged user with a read-only root file system: %s', (_kind, { spec }) => {
    const [container] = spec.containers;
    const [, user] = /^USER (\d+)/m.exec(dockerfile) ?? [];
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    const [{ images }] = documentsOf('base/kustomization.yaml') as [Document];
    expect(images).toEqual([{ name: container.image, newTag: JSON.parse(read('package.json')).version }]);
  });

  it('call only commands that exist', () => {
    for (const kind of ['Job', 'CronJob']) {
      const [node, file, command] = podOf(documentOfKind(kind)).spec.containers[0].command;
      expect([node, file]).toEqual(['node', 'dist/cli.js']);
      expect(read('src/cli/run-command-line.ts')).toMatch(new RegExp(`^  ${command} `, 'm'));
    }
  });

  it('name the ports and paths of the service', () => {
    const { PORT, MANAGEMENT_PORT } = loadConfiguration({});
    const [container] = podOf(documentOfKind('Deployment')).spec.containers;
    expect(container.ports).toEqual([
      { name: 'public', containerPort: PORT },
      { name: 'management', containerPort: MANAGEMENT_PORT },
    ]);
    expect(dockerfile).toContain(`EXPOSE ${PORT} ${MANAGEMENT_PORT}`);
    const names = container.ports.map(({ name }: Document) => name);
    const used = documentsOfKind('Service').flatMap(({ spec }) =>
      spec.ports.map(({ targetPort }: Document) => targetPort),
    );
    used.push(
      ...documentOfKind('NetworkPolicy').spec.ingress.flatMap(({ ports }: Document) =>
        ports.map(({ port }: Document) => port),
      ),
    );
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, port } = container[probe].httpGet;
      expect(port).toBe('management');
      expect(read('src/platform/health/health.controller.ts')).toContain(`@Get('${path.replace('/health/', '')}')`);
    }
    for (const name of used) expect(names).toContain(name);
    expect(documentOfKind('ServiceMonitor').spec.endpoints).toMatchObject([{ port: 'management', path: '/metrics' }]);
  });

  it('select only pods and services that exist', () => {
    const { labels } = podOf(documentOfKind('Deployment')).metadata;
    const { spec } = documentOfKind('Deployment');
    expect(spec.selector.matchLabels).toEqual(labels);
    for (const service of documentsOfKind('Service')) expect(service.spec.selector).toEqual(labels);
    expect(documentOfKind('PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels);
    expect(documentOfKind('NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(documentOfKind('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(
      documentOfKind('Deployment').metadata.name,
    );
    const monitored = documentOfKind('ServiceMonitor').spec.selector.matchLabels;
    expect(
      documentsOfKind('Service').filter((each) =>
        Object.keys(monitored).every((key) => each.metadata.labels[key] === monitored[key]),
      ),
    ).toHaveLength(1);
    for (const kind of ['Job', 'CronJob']) expect(podOf(documentOfKind(kind)).metadata.labels).not.toEqual(labels);
  });

  it('give a pod a longer grace period than its longest shutdown', () => {
    const [, stopTimeoutMs] = /STOP_TIMEOUT_MS = ([\d_]+)/.exec(read('src/run-service.ts')) ?? [];
    const pod = podOf(documentOfKind('Deployment')).spec;
    const [, preStopDelayMs] = /undefined, (\d+)/.exec(pod.containers[0].lifecycle.preStop.exec.command[2]) ?? [];
    const shutdownSeconds = (Number(stopTimeoutMs?.replaceAll('_', '')) + Number(preStopDelayMs)) / 1000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(shutdownSeconds);
  });

  it('contain no Secret', () => {
    for (const file of files) expect(readFileSync(join(DEPLOY, file), 'utf8')).not.toMatch(/kind: Secret$/m);
  });
});

describe('the alerts', () => {
  const rules: Document[] = documentOfKind('PrometheusRule').spec.groups.flatMap((group: Document) => group.rules);

  it.each(rules.map(({ alert, expr }) => [alert, expr]))(
    '%s queries only metrics that the service has',
    (_alert, expr) => {
      const sources = readdirSync(join(PROJECT, 'src'), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => read(join('src', name)))
        .join('\n');
      for (const [name] of expr.matchAll(/\b(?:cas|http|nodejs)_\w+/g)) {
        const bare = name.replace(/_bucket$/, '').replace(/^cas_/, '');
        if (!name.startsWith('nodejs_')) expect(sources).toMatch(new RegExp(`['\`](cas_|cas_database_)?${bare}['\`]`));
      }
    },
  );

  it('each link to a section of the runbook', () => {
    const headings = read('docs/operations.md').match(/^#+ .*$/gm) ?? [];
    const anchors = headings.map(
      (heading) => `docs/operations.md#${heading.replace(/^#+ /, '').toLowerCase().replaceAll(' ', '-')}`,
    );
    for (const { annotations } of rules) expect(anchors).toContain(annotations.runbook_url);
  });
});
