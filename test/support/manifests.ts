import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { PROJECT, read } from './project-files.js';

// biome-ignore lint/suspicious/noExplicitAny: a manifest may have any shape
export type Document = Record<string, any>;

export const DEPLOY = join(PROJECT, 'deploy/kubernetes');

/** The YAML files of deploy/kubernetes. */
export const files = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.yaml'))
  .sort();
export const kustomizations = files.filter((file) => file.endsWith('kustomization.yaml'));

/** All documents of a YAML text. */
export const parseDocuments = (text: string): Document[] =>
  parseAllDocuments(text).map((document) => document.toJS() as Document);
export const documentsOf = (file: string): Document[] => parseDocuments(read(join('deploy/kubernetes', file)));

/** Every resource with its file and kind. */
export const documents = files
  .filter((file) => !/(kustomization|base\/(registry|job-name)|monitoring\/namespace)\.yaml$/.test(file))
  .flatMap((file) => documentsOf(file).map((document): [string, Document] => [`${file}: ${document.kind}`, document]));

export const documentsOfKind = (kind: string): Document[] =>
  documents.map(([, each]) => each).filter((each) => each.kind === kind);

/** The only resource of a kind, or the one with this name. */
export function documentOfKind(kind: string, name?: string): Document {
  const found = documentsOfKind(kind).filter(({ metadata }) => name === undefined || metadata.name === name);
  if (found.length !== 1) throw new Error(`${found.length} documents of kind ${kind} ${name ?? ''}`);
  return found[0] as Document;
}

/** The rules of all alerts. */
export const alertRules: Document[] = documentOfKind('PrometheusRule')
  .spec.groups.flatMap((group: Document) => group.rules)
  .filter(({ alert }: Document) => alert !== undefined);

/** The pod template of a Deployment, Job or CronJob. */
export const podOf = (document: Document): Document => (document.spec.jobTemplate ?? document).spec.template;
/** The containers of a pod template, and first those that run before the others. */
export const containersOf = ({ spec }: Document): Document[] => [...(spec.initContainers ?? []), ...spec.containers];
export const jobs: Document[] = ['Job', 'CronJob'].flatMap(documentsOfKind);
export const pods = [documentOfKind('Deployment'), ...jobs].map((document): [string, Document] => [
  `${document.kind} ${document.metadata.name}`,
  podOf(document),
]);

/** The literals of a ConfigMap that a kustomization generates. */
export function literalsOf(file: string, name: string): Record<string, string> {
  const generators: Document[] = documentsOf(file).flatMap(({ configMapGenerator = [] }) => configMapGenerator);
  const literals: string[] = generators.filter((each) => each.name === name).flatMap((each) => each.literals ?? []);
  return Object.fromEntries(literals.map((literal) => literal.split(/=(.*)/s).slice(0, 2)));
}
/** The variables of the service in the base. */
export const variables = literalsOf('base/kustomization.yaml', 'customer-authorization');

/** The variables that a container gets. */
export const environmentOfContainer = ({ envFrom, env = [] }: Document): Record<string, string> => ({
  ...(envFrom && variables),
  ...Object.fromEntries(env.map(({ name, value }: Document) => [name, value])),
});
