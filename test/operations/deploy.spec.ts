import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { DATABASE_VARIABLES, loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { declaredProperties } from '../../src/platform/validation/validation.js';
import { assertValid } from '../support/manifest-schemas.js';
import {
  containersOf,
  DEPLOY,
  type Document,
  documentOfKind,
  documents,
  documentsOf,
  documentsOfKind,
  environmentOfContainer,
  files,
  jobs,
  kustomizations,
  podOf,
  pods,
  variables,
} from '../support/manifests.js';
import { read } from '../support/project-files.js';

const dockerfile = read('Dockerfile');

/** Defaults of MySQL 8 and 9. */
const MAX_CONNECTIONS = 151;
const MAX_PREPARED_STATEMENTS = 16_382;
const NAMESPACE_LABEL = 'kubernetes.io/metadata.name';

const [base] = documentsOf('base/kustomization.yaml') as [Document];
const [{ pairs: sharedLabels }] = base.labels as [Document];
const labelsOf = (pod: Document) => ({ ...sharedLabels, ...pod.metadata.labels });
const policies = documentsOfKind('NetworkPolicy');
const policiesOf = (pod: Document) =>
  policies.filter(({ spec }) =>
    Object.entries(spec.podSelector.matchLabels).every(([name, value]) => labelsOf(pod)[name] === value),
  );

describe('the Kubernetes manifests', () => {
  it.each(documents)('are valid by the schema of their kind: %s', (_name, document) => {
    expect(() => assertValid(document)).not.toThrow();
  });

  it('are all listed by a kustomization, and every listed file exists', () => {
    const listed = kustomizations.flatMap((file) => {
      const [{ resources = [], configurations = [], configMapGenerator = [] }] = documentsOf(file) as [Document];
      const named = [
        ...resources,
        ...configurations,
        ...configMapGenerator.flatMap((each: Document) => each.files ?? []),
      ];
      return named
        .filter((name: string) => name.endsWith('.yaml'))
        .map((name: string) => relative(DEPLOY, join(DEPLOY, dirname(file), name)));
    });
    expect(listed.sort()).toEqual(files.filter((file) => !file.endsWith('kustomization.yaml')));
  });

  it('set only variables that the service knows, with values that it accepts', () => {
    const mounted = { DATABASE_URL: 'mysql://u:p@db/auth', ADMIN_TOKENS: `alice:all:${'x'.repeat(32)}` };
    for (const name of Object.keys(mounted)) expect(variables).toHaveProperty(`${name}_FILE`);
    for (const [kind, pod] of pods) {
      const environment = environmentOfContainer(pod.spec.containers[0]);
      // the jobs have only the variables that their commands read
      const known = kind.startsWith('Deployment') ? declaredProperties(Configuration) : DATABASE_VARIABLES;
      for (const name of Object.keys(environment))
        expect([...known, ...known.map((each) => `${each}_FILE`)]).toContain(name);
      const values = Object.entries(environment).filter(([name]) => !(name.replace(/_FILE$/, '') in mounted));
      expect(() => loadConfiguration({ ...Object.fromEntries(values), ...mounted }, known)).not.toThrow();
    }
  });

  it.each(pods)(
    'mount every file that a variable names, and nothing that the container does not read: %s',
    (_kind, pod) => {
      const [container] = pod.spec.containers;
      const named = Object.values(environmentOfContainer(container)).filter((value) => value.startsWith('/'));
      const paths: string[] = container.volumeMounts.map(({ mountPath }: Document) => mountPath);
      const folders = named.map((path) => dirname(path));
      // the registry file names the files in the second folder
      if (container.command?.includes('apply')) folders.push('/etc/customer-authorization', '/run/secrets/registry');
      expect(paths.sort()).toEqual(folders.sort());
      const volumes = pod.spec.volumes.map(({ name }: Document) => name);
      const mounts = containersOf(pod).flatMap(({ volumeMounts }) => volumeMounts);
      expect(mounts.map(({ name }: Document) => name).sort()).toEqual(volumes.sort());
    },
  );

  it.each(pods)('run the image as its unprivileged user with a read-only root file system: %s', (_kind, { spec }) => {
    const [container] = spec.containers;
    const [, user] = /^USER (\d+)/m.exec(dockerfile) ?? [];
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user) });
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    expect(base.images).toEqual([{ name: container.image, newTag: JSON.parse(read('package.json')).version }]);
  });

  it('call only commands that exist', () => {
    for (const container of jobs.flatMap((job) => containersOf(podOf(job)))) {
      const [node, file, ...command] = container.command.filter((part: string) => !part.startsWith('/'));
      expect([node, file]).toEqual(['node', 'dist/cli.js']);
      expect(read('src/operator/cli/run-command-line.ts')).toMatch(new RegExp(`^  ${command.join(' ')} `, 'm'));
    }
  });

  it('name the ports and paths of the service', () => {
    const { PORT, MANAGEMENT_PORT } = loadConfiguration({});
    const [container] = podOf(documentOfKind('Deployment')).spec.containers;
    expect(container.ports).toEqual([
      { name: 'public', containerPort: PORT },
      { name: 'management', containerPort: MANAGEMENT_PORT },
      { name: 'admin', containerPort: Number(variables.ADMIN_PORT) },
    ]);
    expect(dockerfile).toContain(`EXPOSE ${PORT} ${MANAGEMENT_PORT}`);
    const names = container.ports.map(({ name }: Document) => name);
    const used = documentsOfKind('Service').flatMap(({ spec }) =>
      spec.ports.map(({ targetPort }: Document) => targetPort),
    );
    const { ingress } = documentOfKind('NetworkPolicy', 'customer-authorization').spec;
    used.push(...ingress.flatMap(({ ports }: Document) => ports.map(({ port }: Document) => port)));
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, port } = container[probe].httpGet;
      expect(port).toBe('management');
      expect(read('src/platform/health/health.controller.ts')).toContain(`@Get('${path.replace('/health/', '')}')`);
    }
    for (const name of used) expect(names).toContain(name);
    expect(documentOfKind('ServiceMonitor').spec.endpoints).toMatchObject([{ port: 'metrics', path: '/metrics' }]);
  });

  it('select only pods and services that exist', () => {
    const { labels } = podOf(documentOfKind('Deployment')).metadata;
    const selectors = [
      documentOfKind('Deployment').spec.selector.matchLabels,
      documentOfKind('PodDisruptionBudget').spec.selector.matchLabels,
      documentOfKind('NetworkPolicy', 'customer-authorization').spec.podSelector.matchLabels,
      ...documentsOfKind('Service').map(({ spec }) => spec.selector),
    ];
    for (const selector of selectors) {
      expect(labels).toMatchObject(selector);
      for (const job of jobs) expect(podOf(job).metadata.labels).not.toMatchObject(selector);
    }
    expect(documentOfKind('HorizontalPodAutoscaler').spec.scaleTargetRef.name).toBe(
      documentOfKind('Deployment').metadata.name,
    );
    const { matchLabels } = documentOfKind('ServiceMonitor').spec.selector;
    const monitored = documentsOfKind('Service').filter(({ metadata }) =>
      Object.entries(matchLabels).every(([name, value]) => metadata.labels[name] === value),
    );
    expect(monitored.map(({ metadata }) => metadata.name)).toEqual(['customer-authorization-metrics']);
  });

  it('give a pod a longer grace period than its longest shutdown', () => {
    const [, stopTimeoutMs] = /STOP_TIMEOUT_MS = ([\d_]+)/.exec(read('src/run-service.ts')) ?? [];
    const pod = podOf(documentOfKind('Deployment')).spec;
    const [, preStopDelayMs] = /undefined, (\d+)/.exec(pod.containers[0].lifecycle.preStop.exec.command[2]) ?? [];
    const shutdownSeconds = (Number(stopTimeoutMs?.replaceAll('_', '')) + Number(preStopDelayMs)) / 1000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(shutdownSeconds);
  });

  it('contain no Secret', () => {
    for (const file of files) expect(read(join('deploy/kubernetes', file))).not.toMatch(/kind: Secret$/m);
  });
});

describe('the image', () => {
  it('has the labels of the OCI with the version and the description of the package', () => {
    const { bin, version, description, license } = JSON.parse(read('package.json'));
    const labels = Object.fromEntries(
      [...dockerfile.matchAll(/org\.opencontainers\.image\.(\S+?)="([^"]*)"/g)].map(([, label, value]) => [
        label,
        value,
      ]),
    );
    expect(labels).toMatchObject({
      title: Object.keys(bin)[0],
      version,
      description,
      licenses: license,
      revision: '$REVISION',
    });
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(new Set(bases.map((base) => `docker.io/library/${base}`))).toEqual(new Set([labels['base.name']]));
  });
});

describe('the pods of the manifests', () => {
  it.each(pods)('have a service account of their own without a token, and no service links: %s', (_kind, { spec }) => {
    const account = documentOfKind('ServiceAccount', spec.serviceAccountName);
    expect(account.automountServiceAccountToken).toBe(false);
    expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  });

  it.each(pods)('have secrets that only root and their group can read: %s', (_kind, { spec }) => {
    const secrets = spec.volumes.filter(({ secret }: Document) => secret);
    expect(secrets.length).toBeGreaterThan(0);
    for (const { secret } of secrets) expect(secret.defaultMode).toBe(0o440);
    expect(spec.securityContext.fsGroup).toBe(spec.securityContext.runAsGroup);
  });

  it.each(pods)('have the recommended labels: %s', (_kind, pod) => {
    expect(labelsOf(pod)).toMatchObject({
      'app.kubernetes.io/name': 'customer-authorization',
      'app.kubernetes.io/component': expect.stringMatching(/^(service|migrate|registry|purge)$/),
      'app.kubernetes.io/part-of': 'customer-authorization',
      'app.kubernetes.io/version': JSON.parse(read('package.json')).version,
    });
    expect(base.labels).toMatchObject([{ includeTemplates: true }]);
  });

  it('end if they are jobs, and finished jobs are deleted', () => {
    for (const { spec } of jobs)
      expect(spec.jobTemplate?.spec ?? spec).toMatchObject({
        activeDeadlineSeconds: expect.any(Number),
        ttlSecondsAfterFinished: expect.any(Number),
      });
  });

  it('have no more connections and prepared statements than MySQL allows by default', () => {
    const { maxReplicas, metrics } = documentOfKind('HorizontalPodAutoscaler').spec;
    const { maxSurge } = documentOfKind('Deployment').spec.strategy.rollingUpdate;
    const ofJobs = jobs.map((job) => Number(environmentOfContainer(podOf(job).spec.containers[0]).DB_POOL_SIZE));
    const connections = (maxReplicas + maxSurge) * Number(variables.DB_POOL_SIZE) + ofJobs.reduce((a, b) => a + b, 0);
    const [, perConnection] =
      /PREPARED_STATEMENTS_PER_CONNECTION = (\d+)/.exec(read('src/platform/database/data-source-options.ts')) ?? [];
    expect(connections).toBeLessThan(MAX_CONNECTIONS);
    expect(connections * Number(perConnection)).toBeLessThan(MAX_PREPARED_STATEMENTS);
    expect(metrics).toMatchObject([{ resource: { name: 'cpu', target: { type: 'AverageValue' } } }]);
  });

  it('can be evicted from a node one after another, however few there are, and while they are not ready', () => {
    const { spec } = documentOfKind('PodDisruptionBudget');
    expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    expect(spec.minAvailable).toBeUndefined();
  });
});

describe('the network policies', () => {
  it.each(pods)('limit incoming and outgoing connections: %s', (_kind, pod) => {
    for (const type of ['Ingress', 'Egress'])
      expect(policiesOf(pod).some(({ spec }) => spec.policyTypes.includes(type))).toBe(true);
  });

  it('allow the jobs to reach DNS and the database only, and no pod to reach the jobs', () => {
    for (const [kind, pod] of pods.filter(([each]) => !each.startsWith('Deployment'))) {
      const rules = policiesOf(pod).flatMap(({ spec }) => spec.egress ?? []);
      const ports = rules.flatMap(({ ports }: Document) => ports.map(({ port }: Document) => port));
      expect([kind, [...new Set(ports)]]).toEqual([kind, [53, 3306]]);
      expect(policiesOf(pod).flatMap(({ spec }) => spec.ingress ?? [])).toEqual([]);
    }
  });

  it('let different callers request tokens, scrape, introspect and administrate, chosen by a label that tenants cannot set', () => {
    const { ingress } = documentOfKind('NetworkPolicy', 'customer-authorization').spec;
    const callers: [port: string, namespace: string][] = [];
    for (const { ports, from } of ingress) {
      expect(ports).toHaveLength(1);
      for (const { namespaceSelector } of from) {
        expect(Object.keys(namespaceSelector.matchLabels)).toEqual([NAMESPACE_LABEL]);
        callers.push([ports[0].port, namespaceSelector.matchLabels[NAMESPACE_LABEL]]);
      }
    }
    expect(callers).toEqual([
      ['public', 'ingress-nginx'],
      ['management', 'customer-chat'],
      ['management', 'customer-authorization-operators'],
      ['admin', 'customer-authorization-operators'],
      ['management', 'monitoring'],
    ]);
  });
});

describe('the components', () => {
  const { hostname } = new URL(variables.AUTH_URL ?? '');
  const publicPort = documentOfKind('Service', 'customer-authorization').spec.ports[0];

  it('patch only resources that exist', () => {
    const generated = base.configMapGenerator.map(({ name }: Document) => name);
    for (const file of kustomizations) {
      for (const { target } of documentsOf(file)[0]?.patches ?? [])
        if (target.kind === 'ConfigMap') expect(generated).toContain(target.name);
        else if (target.name === undefined) expect(documentsOfKind(target.kind)).not.toEqual([]);
        else expect(() => documentOfKind(target.kind, target.name.replace(/[\^$]/g, ''))).not.toThrow();
    }
  });

  it('ingress serves the host of AUTH_URL with TLS and leads to the public port only', () => {
    const { tls, rules } = documentOfKind('Ingress').spec;
    expect(tls).toEqual([{ hosts: [hostname], secretName: expect.any(String) }]);
    const backends = rules.flatMap(({ host, http }: Document) =>
      http.paths.map(({ backend }: Document) => [host, backend.service.name, backend.service.port.name]),
    );
    expect(backends).toEqual([[hostname, 'customer-authorization', publicPort.name]]);
  });

  it('gateway serves the host of AUTH_URL with TLS and leads to the public port only', () => {
    const [https, http] = documentOfKind('Gateway').spec.listeners;
    expect([https.protocol, https.hostname, https.tls.mode]).toEqual(['HTTPS', hostname, 'Terminate']);
    const [route, redirect] = documentsOfKind('HTTPRoute').map(({ spec }) => spec);
    expect(route?.rules[0].backendRefs).toEqual([{ name: 'customer-authorization', port: publicPort.port }]);
    expect(redirect?.rules[0].filters[0].requestRedirect.scheme).toBe('https');
    const names = [route, redirect].map((each) => [each?.hostnames, each?.parentRefs[0].sectionName]);
    expect(names).toEqual([
      [[hostname], https.name],
      [[hostname], http.name],
    ]);
  });

  it('external-secrets creates every secret that a pod mounts, with the files that its variables name', () => {
    const created = new Map(
      documentsOfKind('ExternalSecret').map(({ spec }) => [
        spec.target.name,
        spec.data?.map(({ secretKey }: Document) => secretKey) ?? [],
      ]),
    );
    for (const [, pod] of pods) {
      const paths = containersOf(pod).flatMap((each) => Object.values(environmentOfContainer(each)));
      const mounts = containersOf(pod).flatMap(({ volumeMounts }) => volumeMounts);
      const isRequired = ({ secret }: Document) => secret && !secret.optional;
      for (const { name, secret } of pod.spec.volumes.filter(isRequired)) {
        const { mountPath } = mounts.find((each: Document) => each.name === name);
        const needed = paths.filter((path) => path.startsWith(`${mountPath}/`)).map((path) => path.split('/').at(-1));
        expect(created.get(secret.secretName)).toEqual(needed);
      }
    }
  });

  it('the production overlay pins the image by its digest', () => {
    const [{ images }] = documentsOf('overlays/production/kustomization.yaml') as [Document];
    expect(images).toEqual([
      {
        name: base.images[0].name,
        newName: expect.any(String),
        digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      },
    ]);
  });
});
