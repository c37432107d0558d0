import { describe, expect, it } from 'vitest';
import { assertValid } from '../support/manifest-schemas.js';
import { type Document, parseDocuments } from '../support/manifests.js';
import { read } from '../support/project-files.js';
import { registryOfPage } from '../support/registry-of-page.js';

const {
  clients: [client],
  resource_servers: [resourceServer],
} = registryOfPage();

describe.each([
  ['backend', client, { name: 'CLIENT', value: client.client_id }],
  ['resource-server', resourceServer, { name: 'RESOURCE_SERVER_ID', value: resourceServer.id }],
])('the manifest of a %s without a secret', (name, { federated }, id) => {
  const documents = parseDocuments(read(`deploy/${name}/${name}.yaml`));
  const [account, deployment] = documents as [Document, Document];
  const { spec: pod } = deployment.spec.template;
  const [kustomization] = parseDocuments(read(`deploy/${name}/kustomization.yaml`)) as [Document];

  it('has objects that are valid by the schema of their kind', () => {
    for (const document of documents) expect(() => assertValid(document)).not.toThrow();
  });

  it('mounts a token of 10 minutes for the audience of the entry, and no other token and no secret', () => {
    const [{ serviceAccountToken }] = pod.volumes[0].projected.sources;
    expect(pod.volumes).toHaveLength(1);
    expect(serviceAccountToken).toMatchObject({ audience: federated.audience, expirationSeconds: 600 });
    for (const { automountServiceAccountToken } of [account, pod]) expect(automountServiceAccountToken).toBe(false);
    expect(JSON.stringify(documents)).not.toMatch(/secretKeyRef|secretName/);
  });

  it('runs as the account that the entry names, and gives the program the path of the token', () => {
    const subject = `system:serviceaccount:${kustomization.namespace}:${account.metadata.name}`;
    expect([subject, pod.serviceAccountName]).toEqual([federated.subject, account.metadata.name]);
    const [{ env, volumeMounts }] = pod.containers;
    const path = `${volumeMounts[0].mountPath}/${pod.volumes[0].projected.sources[0].serviceAccountToken.path}`;
    expect(env).toContainEqual({ name: 'ASSERTION_FILE', value: path });
    expect(env).toContainEqual(id);
  });
});

it('the pods of the resource server may reach the management port', () => {
  const [, deployment] = parseDocuments(read('deploy/resource-server/resource-server.yaml'));
  const [{ namespace }] = parseDocuments(read('deploy/resource-server/kustomization.yaml')) as [Document];
  const [, policy] = parseDocuments(read('deploy/kubernetes/base/network.yaml')) as [Document, Document];
  const { from } = policy.spec.ingress.find(({ ports }: Document) => ports[0].port === 'management');
  expect(from[0].namespaceSelector.matchLabels).toEqual({ 'kubernetes.io/metadata.name': namespace });
  expect(deployment?.spec.template.metadata.labels).toMatchObject(from[0].podSelector.matchLabels);
});
