import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { assertValid } from '../support/manifest-schemas.js';
import { type Document, parseDocuments } from '../support/manifests.js';
import { read } from '../support/project-files.js';

const documents = parseDocuments(read('deploy/backend/backend.yaml'));
const [account, deployment] = documents as [Document, Document];
const { spec: pod } = deployment.spec.template;
const [kustomization] = parseDocuments(read('deploy/backend/kustomization.yaml')) as [Document];
const [client] = parse(read('examples/integrating/backend/registry.yaml')).clients;

describe('the manifest of a backend without a secret', () => {
  it('has objects that are valid by the schema of their kind', () => {
    for (const document of documents) expect(() => assertValid(document)).not.toThrow();
  });

  it('mounts a token of 10 minutes for the audience of the entry, and no other token and no secret', () => {
    const [{ serviceAccountToken }] = pod.volumes[0].projected.sources;
    expect(pod.volumes).toHaveLength(1);
    expect(serviceAccountToken).toMatchObject({ audience: client.federated.audience, expirationSeconds: 600 });
    for (const { automountServiceAccountToken } of [account, pod]) expect(automountServiceAccountToken).toBe(false);
    expect(JSON.stringify(documents)).not.toMatch(/secretKeyRef|secretName/);
  });

  it('runs as the account that the entry names, and gives the program the path of the token', () => {
    const subject = `system:serviceaccount:${kustomization.namespace}:${account.metadata.name}`;
    expect([subject, pod.serviceAccountName]).toEqual([client.federated.subject, account.metadata.name]);
    const [{ env, volumeMounts }] = pod.containers;
    const path = `${volumeMounts[0].mountPath}/${pod.volumes[0].projected.sources[0].serviceAccountToken.path}`;
    expect(env).toContainEqual({ name: 'ASSERTION_FILE', value: path });
    expect(env).toContainEqual({ name: 'CLIENT', value: client.client_id });
  });

  it('has the entry of the page about Kubernetes', () => {
    const [, yaml = ''] = /```yaml\n(clients:\n.*?)```/s.exec(read('docs/kubernetes.md')) ?? [];
    expect(parse(yaml).clients).toEqual([client]);
  });
});
