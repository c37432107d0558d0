import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { DATABASE_VARIABLES, loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { declaredProperties } from '../../src/platform/validation.js';
import { assertValid } from '../support/manifest-schemas.js';
import {
  DEPLOY,
  type Document,
  documentOfKind,
  documents,
  documentsOf,
  documentsOfKind,
  environmentOfContainer,
  files,
  kustomizations,
  podOf,
  pods,
  read,
  variables,
} from '../support/manifests.js';

const PROJECT = join(import.meta.dirname, '../..');
const dockerfile = read('Dockerfile');

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
    const mounted = { DATABASE_URL: 'mysql://u:p@db/auth', ADMIN_TOKENS: `alice:${'x'.repeat(32)}` };
    for (const name of Object.keys(mounted)) expect(variables).toHaveProperty(`${name}_FILE`);
    for (const [kind, pod] of pods) {
      const environment = environmentOfContainer(pod.spec.containers[0]);
      // the jobs have only the variables that their commands read
      const known = kind === 'Deployment' ? declaredProperties(Configuration) : DATABASE_VARIABLES;
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
      // the registry file names the files in this folder
      if (folders.includes('/etc/customer-authorization')) folders.push('/run/secrets/registry');
      expect(paths.sort()).toEqual(folders.sort());
      const volumes = pod.spec.volumes.map(({ name }: Document) => name);
      expect(container.volumeMounts.map(({ name }: Document) => name).sort()).toEqual(volumes.sort());
    },
  );

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
      { name: 'admin', containerPort: Number(variables.ADMIN_PORT) },
      { name: 'metrics', containerPort: Number(variables.METRICS_PORT) },
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
      for (const kind of ['Job', 'CronJob'])
        expect(podOf(documentOfKind(kind)).metadata.labels).not.toMatchObject(selector);
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
    const { name, version, description, license } = JSON.parse(read('package.json'));
    const labels = Object.fromEntries(
      [...dockerfile.matchAll(/org\.opencontainers\.image\.(\S+?)="([^"]*)"/g)].map(([, label, value]) => [
        label,
        value,
      ]),
    );
    expect(labels).toMatchObject({ title: name, version, description, licenses: license, revision: '$REVISION' });
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(new Set(bases.map((base) => `docker.io/library/${base}`))).toEqual(new Set([labels['base.name']]));
  });
});

describe('the alerts', () => {
  const rules: Document[] = documentOfKind('PrometheusRule')
    .spec.groups.flatMap((group: Document) => group.rules)
    .filter(({ alert }: Document) => alert !== undefined);

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
      (heading) =>
        `https://runbook.example.com/operations.md#${heading.replace(/^#+ /, '').toLowerCase().replaceAll(' ', '-')}`,
    );
    for (const { annotations } of rules) expect(anchors).toContain(annotations.runbook_url);
  });
});
