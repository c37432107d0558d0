import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findProgram } from '../../scripts/debian-packages.js';
import { DEPLOY, type Document, kustomizations, parseDocuments } from '../support/manifests.js';

const program = findProgram(['kustomize', 'kubectl']);
const COMMAND = program?.endsWith('kubectl') ? ['kustomize'] : ['build'];
const folders = (below: string) =>
  kustomizations.map((file) => dirname(file)).filter((folder) => folder.startsWith(`${below}/`));
const overlays = folders('overlays');
const components = folders('components');

describe.skipIf(program === undefined)('kustomize (skipped without the program kustomize or kubectl)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kustomize-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  cpSync(DEPLOY, join(folder, 'kubernetes'), { recursive: true });

  /** Builds an overlay with components, as an operator's own overlay does. */
  function build(overlay: string, ...others: string[]): Document[] {
    const own = mkdtempSync(join(folder, 'overlay-'));
    const lines = [
      'apiVersion: kustomize.config.k8s.io/v1beta1',
      'kind: Kustomization',
      `resources: [../kubernetes/${overlay}]`,
      `components: [${others.map((each) => `../kubernetes/${each}`).join(', ')}]`,
      'configMapGenerator:',
      '  - { name: customer-authorization-registry, behavior: replace, files: [registry.yaml] }',
    ];
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, 'kustomization.yaml'), lines.join('\n'));
    writeFileSync(join(own, 'registry.yaml'), 'revision: 2\n');
    return parseDocuments(execFileSync(program ?? '', [...COMMAND, own], { encoding: 'utf8' }));
  }
  const find = (built: Document[], kind: string, name: string) =>
    built.find((each) => each.kind === kind && each.metadata.name === name) as Document;

  it.each(overlays)('builds %s, and all its pods follow one ConfigMap of the registry', (overlay) => {
    const built = build(overlay);
    expect(find(built, 'ConfigMap', 'customer-authorization-registry').data).toEqual({
      'registry.yaml': 'revision: 2\n',
    });
    const { volumes } = find(built, 'Deployment', 'customer-authorization').spec.template.spec;
    expect(volumes).toContainEqual({ name: 'registry', configMap: { name: 'customer-authorization-registry' } });
  });

  it.each(overlays)('gives all pods of %s the label that the network policy of all pods selects', (overlay) => {
    const built = build(overlay);
    const { matchLabels } = find(built, 'NetworkPolicy', 'customer-authorization-all-pods').spec.podSelector;
    const templates = built.flatMap(({ spec }) => (spec?.jobTemplate?.spec ?? spec)?.template ?? []);
    expect(templates).toHaveLength(3);
    for (const { metadata } of templates) expect(metadata.labels).toMatchObject(matchLabels);
  });

  it.each(components)('builds %s on top of an overlay', (component) => {
    expect(build('overlays/production', component).length).toBeGreaterThanOrEqual(build('overlays/production').length);
  });

  it.each(['components/ingress', 'components/gateway'])(
    'with %s, no pod reaches the public port directly',
    (component) => {
      const { ingress } = find(build('overlays/staging', component), 'NetworkPolicy', 'customer-authorization').spec;
      for (const rule of ingress) expect(rule.from).toBeDefined();
    },
  );

  it('components/argo-cd runs the migration before the new pods, and replaces the earlier job', () => {
    const built = build('overlays/production', 'components/argo-cd');
    const job = find(built, 'Job', 'customer-authorization-migrate').metadata.annotations;
    expect(job).toMatchObject({
      'argocd.argoproj.io/hook': 'Sync',
      'argocd.argoproj.io/hook-delete-policy': 'BeforeHookCreation',
    });
    const { annotations } = find(built, 'Deployment', 'customer-authorization').metadata;
    const wave = 'argocd.argoproj.io/sync-wave';
    expect(Number(annotations[wave])).toBeGreaterThan(Number(job[wave]));
  });

  it('components/flux replaces the job when its template changes, and leaves the finished job', () => {
    const { metadata, spec } = find(
      build('overlays/production', 'components/flux'),
      'Job',
      'customer-authorization-migrate',
    );
    expect(metadata.annotations).toEqual({ 'kustomize.toolkit.fluxcd.io/force': 'enabled' });
    expect(spec.ttlSecondsAfterFinished).toBeUndefined();
  });
});
