import { parse } from 'yaml';
import { read } from './project-files.js';

/** The registry of services without secrets that the page about Kubernetes shows. */
export function registryOfPage() {
  const [, yaml = ''] = /```yaml\n(organizations:\n.*?)```/s.exec(read('docs/kubernetes.md')) ?? [];
  return parse(yaml);
}
