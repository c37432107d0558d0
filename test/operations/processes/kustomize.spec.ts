import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findKustomize } from '../../../scripts/programs.js';
import { assertValid } from '../../support/manifest-schemas.js';
import {
  DEPLOY,
  type Document,
  environmentOfContainer,
  kustomizations,
  literalsOf,
  parseDocuments,
  podOf,
} from '../../support/manifests.js';
import { read, temporaryFolder } from '../../support/project-files.js';

const program = findKustomize();
const COMMAND = program?.endsWith('kubectl') ? ['kustomize'] : ['build'];
const folders = (below: string) =>
  kustomizations.map((file) => dirname(file)).filter((folder) => folder.startsWith(`${below}/`));
const overlays = folders('overlays');
const components = folders('components');
const component = (name: string) => `components/${name}`;
/** All components that can be used together. The other two are `gateway` and `flux`. */
const TOGETHER = [
  ...['parameters', 'ingress', 'monitoring', 'database-ca', 'key-sets', 'argo-cd', 'cpu-limits'],
  ...['restart-without-database', 'external-secrets-registry', 'external-secrets'],
].map(component);

const find = (built: Document[], kind: string, name = 'customer-authorization') =>
  built.find((each) => each.kind === kind && each.metadata.name.replace(HASH, '') === name) as Document;
/** The hash of a ConfigMap in a name. */
const MIGRATE = 'customer-authorization-migrate';
const HASH = /-[a-z0-9]{10}$/;
const podsOf = (built: Document[]) =>
  built.filter(({ kind }) => ['Deployment', 'Job', 'CronJob'].includes(kind)).map(podOf);
const policiesOf = (built: Document[]) => built.filter(({ kind }) => kind === 'NetworkPolicy');
/** Every destination that a pod may connect to. */
const destinationsOf = (built: Document[]) =>
  policiesOf(built).flatMap(({ spec }) =>
    (spec.egress ?? []).flatMap(({ to, ports }: Document) =>
      to.map(({ ipBlock, namespaceSelector }: Document) => [
        ipBlock?.cidr ?? namespaceSelector.matchLabels['kubernetes.io/metadata.name'],
        ports.map(({ port }: Document) => port),
      ]),
    ),
  );
/** The first example of docs/kubernetes.md with this text. */
function exampleWith(text: string): string {
  const blocks = read('docs/kubernetes.md').matchAll(/^( *)```yaml\n(.*?)^ *```$/gms);
  const examples = Array.from(blocks, ([, indentation, lines = '']) =>
    lines.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
  );
  return examples.find((example) => example.includes(text)) ?? '';
}

describe.skipIf(program === undefined)('kustomize (skipped without the program kustomize or kubectl)', () => {
  const folder = temporaryFolder('kustomize');
  cpSync(DEPLOY, join(folder, 'customer-authorization-service/deploy/kubernetes'), { recursive: true });

  /** Builds a folder with these files next to the project. */
  function buildFiles(files: Record<string, string>): Document[] {
    const own = mkdtempSync(join(folder, 'overlay-'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(own, name), text);
    return parseDocuments(execFileSync(program ?? '', [...COMMAND, own], { encoding: 'utf8', stdio: 'pipe' }));
  }

  interface Own {
    parameters?: Record<string, string>;
    files?: Record<string, string>;
    namespace?: string;
  }

  /** Builds the base or an overlay with components, as an operator's own overlay does. */
  function build(resource: string, others: string[] = [], { parameters = {}, files = {}, namespace }: Own = {}) {
    const path = (each: string) => `../customer-authorization-service/deploy/kubernetes/${each}`;
    const kustomization = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      namespace,
      resources: [path(resource), ...Object.keys(files)],
      components: others.map(path),
      configMapGenerator: [
        { name: 'customer-authorization-registry', behavior: 'replace', files: ['registry.yaml'] },
        { name: 'customer-authorization-database-ca', files: ['ca.pem'] },
        {
          name: 'parameters',
          behavior: 'merge',
          literals: Object.entries(parameters).map(([name, value]) => `${name}=${value}`),
        },
      ],
    };
    const all = { 'registry.yaml': 'clients: []\n', 'ca.pem': 'certificate', ...files };
    return buildFiles({ ...all, 'kustomization.yaml': JSON.stringify(kustomization) });
  }

  it.each(overlays)('builds %s of valid objects, and the jobs apply one ConfigMap of the registry', (overlay) => {
    const built = build(overlay);
    for (const each of built) expect(() => assertValid(each)).not.toThrow();
    expect(find(built, 'ConfigMap', 'customer-authorization-registry').data).toEqual({
      'registry.yaml': 'clients: []\n',
    });
    const [job, cronJob] = [find(built, 'Job', MIGRATE), find(built, 'CronJob', 'customer-authorization-registry')];
    for (const { volumes } of [podOf(job).spec, podOf(cronJob).spec])
      expect(volumes).toContainEqual({ name: 'registry', configMap: { name: 'customer-authorization-registry' } });
    const names = podOf(find(built, 'Deployment')).spec.volumes.map(({ name }: Document) => name);
    expect(names).not.toContain('registry');
  });

  it('names the job of the roll-out after the image and the registry of the overlay', () => {
    const nameOf = (registry: string, digest: string) => {
      const kustomization = exampleWith('kind: Kustomization\n').replace(/sha256:0+/, `sha256:${digest.repeat(64)}`);
      const files = { 'kustomization.yaml': kustomization, 'registry.yaml': registry, 'ca.pem': 'certificate' };
      return find(buildFiles(files), 'Job', MIGRATE).metadata.name;
    };
    const name = nameOf('clients: []\n', '1');
    expect(name).toMatch(HASH);
    expect(nameOf('clients: []\n', '1')).toBe(name);
    const others = [nameOf('clients: []\n', '2'), nameOf('agents: []\n', '1')];
    expect(new Set([name, ...others]).size).toBe(3);
  });

  it.each(components)('builds %s on top of the base, of valid objects', (name) => {
    for (const each of build('base', [name])) expect(() => assertValid(each)).not.toThrow();
  });

  it('gives the namespace of the overlay to every object of every component, and to the alerts', () => {
    const built = build('base', TOGETHER, { namespace: 'chat' });
    expect(components.filter((each) => !TOGETHER.includes(each))).toEqual(['flux', 'gateway'].map(component));
    for (const each of built) {
      expect(() => assertValid(each)).not.toThrow();
      expect([each.kind, each.metadata.namespace]).toEqual([each.kind, 'chat']);
    }
    const [watched] = find(built, 'PrometheusRule').spec.groups[0].rules;
    expect(watched.labels).toEqual({ job: 'customer-authorization', namespace: 'chat' });
  });

  it('gives the namespace to the alerts also if an outer overlay sets it', () => {
    const built = build('overlays/production', [component('monitoring')], { namespace: 'outer' });
    expect(find(built, 'PrometheusRule').spec.groups[0].rules[0].labels.namespace).toBe('outer');
  });

  it.each([TOGETHER, [...TOGETHER.filter((each) => !/ingress/.test(each)), component('gateway')]])(
    'writes every parameter wherever its default was, and applies none itself',
    (...used) => {
      const defaults = literalsOf('base/kustomization.yaml', 'parameters');
      const isNumber = (value: string) => /^\d+$/.test(value);
      const parameters = Object.fromEntries(
        Object.entries(defaults).map(([name, value], index) => {
          if (isNumber(value)) return [name, String(7000 + index)];
          if (value.endsWith('/32')) return [name, `10.1.${index}.0/24`];
          return [name, name === 'runbook' ? 'https://acme.example/runbook' : `own-${name}`];
        }),
      );
      const text = JSON.stringify(build('base', used, { parameters }));
      for (const [name, value] of Object.entries(parameters))
        expect([name, new RegExp(isNumber(value) ? `:"?${value}\\b` : value).test(text)]).toEqual([name, true]);
      for (const [name, value] of Object.entries(defaults))
        if (!isNumber(value) && value !== 'customer-authorization')
          expect([name, new RegExp(`["/]${value}["#/]`).test(text)]).toEqual([name, false]);
      expect(text).not.toContain('local-config');
      expect(text).toContain('"AUTH_URL":"https://own-host"');
      expect(text).toContain('"https://acme.example/runbook#requests-fail"');
      expect(text).toContain('"own-secret-prefix/database"');
    },
  );

  it('names every caller and every destination of the pods', () => {
    for (const { spec } of policiesOf(build('base', TOGETHER))) {
      for (const { from, ports } of spec.ingress ?? []) expect([from?.length > 0, ports.length]).toEqual([true, 1]);
      for (const { to, ports } of spec.egress ?? []) expect([to?.length > 0, ports.length > 0]).toEqual([true, true]);
    }
  });

  it('lets the pods connect to DNS and the database only', () => {
    expect(destinationsOf(build('base'))).toEqual([
      ['kube-system', [53, 53]],
      ['169.254.20.10/32', [53, 53]],
      ['192.0.2.10/32', [3306]],
    ]);
  });

  it('mounts every file that a variable of a container names', () => {
    const built = build('base', TOGETHER);
    const configMap = built.find(
      ({ kind, metadata }) => kind === 'ConfigMap' && /^customer-authorization-[0-9a-z]{10}$/.test(metadata.name),
    ) as Document;
    for (const { spec } of podsOf(built)) {
      const [container] = spec.containers;
      const values = { ...(container.envFrom && configMap.data), ...environmentOfContainer({ env: container.env }) };
      const mounted = container.volumeMounts.map(({ mountPath }: Document) => mountPath);
      const named = Object.entries<string>(values).filter(
        ([name, value]) => name.endsWith('_FILE') && value.startsWith('/'),
      );
      for (const [, path] of named) expect(mounted).toContain(dirname(path));
      expect(mounted).toContain('/etc/database-ca');
    }
    expect(configMap.data).toHaveProperty('DATABASE_URL_FILE');
  });

  it('needs no custom resource without components', () => {
    const text = JSON.stringify(build('base'));
    expect(text).not.toMatch(/monitoring\.coreos|external-secrets/i);
  });

  it('sets a CPU limit for every container with components/cpu-limits, and its sum is that of the documented quota', () => {
    const built = build('base', [component('cpu-limits')]);
    const containers = podsOf(built).map(({ spec }) => spec.containers[0].resources);
    const units: Record<string, number> = { m: 0.001, Mi: 2 ** 20, Gi: 2 ** 30 };
    const quantity = (text: string) => Number.parseFloat(text) * (units[text.replace(/[\d.]/g, '')] ?? 1);
    const rows = read('docs/kubernetes.md').matchAll(/^\| (\d+) \| (\d+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$/gm);
    const all = [...rows];
    expect(all).toHaveLength(2);
    for (const [, replicas, pods, ...documented] of all) {
      const ofService = Number(replicas) + 1; // one more during a roll-out
      expect(Number(pods)).toBe(ofService + 3);
      const sums = (['requests', 'limits'] as const).flatMap((kind) =>
        ['cpu', 'memory'].map((resource) =>
          containers.reduce(
            (sum, each, index) => sum + quantity(each[kind][resource]) * (index === 0 ? ofService : 1),
            0,
          ),
        ),
      );
      for (const [index, sum] of sums.entries()) expect(quantity(documented[index] ?? '')).toBeCloseTo(sum, 6);
    }
  });

  it('components/restart-without-database sets LIVENESS_OUTAGE_SECONDS, which no pod has otherwise', () => {
    const environmentOf = (built: Document[]) => podOf(find(built, 'Deployment')).spec.containers[0].env;
    const restarting = build('overlays/production', [component('restart-without-database')]);
    expect(environmentOf(restarting)).toEqual([{ name: 'LIVENESS_OUTAGE_SECONDS', value: '300' }]);
    expect(JSON.stringify(build('overlays/production'))).not.toContain('LIVENESS_OUTAGE_SECONDS');
  });

  it('components/argo-cd runs the migration before the new pods, and replaces the earlier job', () => {
    const built = build('overlays/production', [component('argo-cd')]);
    const job = find(built, 'Job', 'customer-authorization-migrate').metadata.annotations;
    expect(job).toMatchObject({
      'argocd.argoproj.io/hook': 'Sync',
      'argocd.argoproj.io/hook-delete-policy': 'BeforeHookCreation',
    });
    const { annotations } = find(built, 'Deployment').metadata;
    const wave = 'argocd.argoproj.io/sync-wave';
    expect(Number(annotations[wave])).toBeGreaterThan(Number(job[wave]));
  });

  it('components/argo-cd lets the API server merge the registry, also if the overlay brings its own file', () => {
    const registry = find(build('base', [component('argo-cd')]), 'ConfigMap', 'customer-authorization-registry');
    expect(registry.metadata.annotations).toEqual({ 'argocd.argoproj.io/sync-options': 'ServerSideApply=true' });
    expect(registry.data).toEqual({ 'registry.yaml': 'clients: []\n' });
  });

  it('components/parameters opens another port of the DNS, and no longer port 53', () => {
    const parameters = { 'dns-namespace': 'openshift-dns', 'dns-port': '5353' };
    const [dns] = destinationsOf(build('base', [component('parameters')], { parameters }));
    expect(dns).toEqual(['openshift-dns', [5353, 5353]]);
  });

  it('overlays/staging shares neither tokens nor stored secrets nor the database with the defaults', () => {
    const built = build('overlays/staging', [component('external-secrets')]);
    const keys = built.flatMap(({ kind, spec }) => (kind === 'ExternalSecret' ? spec.data : []));
    for (const { remoteRef } of keys) expect(remoteRef.key).toMatch(/^customer-authorization-staging\//);
    expect(keys).toHaveLength(4);
    expect(JSON.stringify(built)).toContain('"TOKEN_REGION":"eu-staging"');
    expect(destinationsOf(built)).not.toContainEqual(['192.0.2.10/32', [3306]]);
  });

  it('components/flux replaces the job when its template changes, and leaves the finished job', () => {
    const built = build('overlays/production', [component('flux')]);
    const { metadata, spec } = find(built, 'Job', 'customer-authorization-migrate');
    expect(metadata.annotations).toEqual({ 'kustomize.toolkit.fluxcd.io/force': 'enabled' });
    expect(spec.ttlSecondsAfterFinished).toBeUndefined();
  });

  it('builds the overlay of docs/kubernetes.md: two replicas, TLS to the database, External Secrets', () => {
    const built = buildFiles({
      'kustomization.yaml': exampleWith('kind: Kustomization\n'),
      'registry.yaml': 'clients: []\n',
      'ca.pem': 'certificate',
    });
    for (const each of built) {
      expect(() => assertValid(each)).not.toThrow();
      expect(each.metadata.namespace).toBe('customer-authorization');
    }
    expect(find(built, 'HorizontalPodAutoscaler').spec.minReplicas).toBe(2);
    expect(destinationsOf(built)).toContainEqual(['10.20.0.0/28', [3306]]);
    expect(find(built, 'Ingress').spec.rules[0].host).toBe('auth.acme.example');
    const mounted = podsOf(built).flatMap(({ spec }) => spec.volumes);
    const needed = mounted.flatMap(({ secret }) => (secret && !secret.optional ? [secret.secretName] : []));
    const created = built.filter(({ kind }) => kind === 'ExternalSecret').map(({ spec }) => spec.target.name);
    expect(created.sort()).toEqual([...new Set(needed)].sort());
    const ca = built.find(({ metadata }) => metadata.name.startsWith('customer-authorization-database-ca-'));
    for (const { spec } of podsOf(built))
      expect(spec.volumes).toContainEqual({ name: 'database-ca', configMap: { name: ca?.metadata.name } });
  });

  it('builds the further network policy of docs/kubernetes.md', () => {
    const built = build('overlays/production', [], { files: { 'egress.yaml': exampleWith('kind: NetworkPolicy\n') } });
    expect(() => assertValid(find(built, 'NetworkPolicy', 'customer-authorization-more'))).not.toThrow();
    expect(destinationsOf(built)).toContainEqual(['observability', [4318]]);
  });

  it('builds the patch of a stored field and the labels for the Prometheus Operator of docs/kubernetes.md', () => {
    const path = (each: string) => `../customer-authorization-service/deploy/kubernetes/${each}`;
    const components = JSON.stringify(['parameters', 'monitoring', 'external-secrets'].map(component).map(path));
    const own = [exampleWith('remoteRef/property'), exampleWith('pairs:')];
    const head = `resources: [${path('base')}]\ncomponents: ${components}\n`;
    const built = buildFiles({ 'kustomization.yaml': head + own.join('') });
    for (const each of built) expect(() => assertValid(each)).not.toThrow();
    const database = find(built, 'ExternalSecret', 'customer-authorization-database').spec.data[0];
    expect(database.remoteRef).toEqual({ key: 'customer-authorization/database', property: 'url' });
    for (const kind of ['ServiceMonitor', 'PrometheusRule'])
      expect(find(built, kind).metadata.labels).toEqual({ release: 'kube-prometheus-stack' });
  });

  it('docs/kubernetes.md has a job of Prometheus that scrapes every pod, with the labels of the alerts', () => {
    const [{ scrape_configs: jobs }] = parseDocuments(exampleWith('scrape_configs:')) as [Document];
    const built = build('base', [component('monitoring')], { namespace: 'customer-authorization' });
    const [watched] = find(built, 'PrometheusRule').spec.groups[0].rules;
    const { metadata, spec } = find(built, 'Service', 'customer-authorization-metrics');
    expect(spec).toMatchObject({ clusterIP: 'None', publishNotReadyAddresses: true });
    expect(jobs).toEqual([
      {
        job_name: watched.labels.job,
        scrape_interval: find(built, 'ServiceMonitor').spec.endpoints[0].interval,
        dns_sd_configs: [
          { names: [`${metadata.name}.${metadata.namespace}.svc.cluster.local`], type: 'A', port: spec.ports[0].port },
        ],
        relabel_configs: [{ target_label: 'namespace', replacement: watched.labels.namespace }],
      },
    ]);
  });

  it('docs/kubernetes.md lists every component and every parameter with its default', () => {
    const page = read('docs/kubernetes.md');
    for (const each of components) expect(page).toContain(`\`${each.replace('components/', '')}\``);
    const table = page.slice(page.indexOf('| parameter |'), page.indexOf('**Secrets of the registry'));
    for (const [name, value] of Object.entries(literalsOf('base/kustomization.yaml', 'parameters'))) {
      const row = table.split('\n').find((line) => line.includes(`\`${name}\``)) ?? '';
      expect(row).toContain(value);
    }
  });
});
