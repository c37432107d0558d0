import { ExternalSecret } from '@kubernetes-models/external-secrets/external-secrets.io/v1beta1';
import { Gateway, HTTPRoute } from '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1';
import { PrometheusRule, ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { CronJob, Job } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Service, ServiceAccount } from 'kubernetes-models/v1';
import type { Document } from './manifests.js';

const KINDS: Record<string, new (document: never) => { validate(): void }> = {
  ConfigMap,
  CronJob,
  Deployment,
  ExternalSecret,
  Gateway,
  HTTPRoute,
  HorizontalPodAutoscaler,
  Ingress,
  Job,
  NetworkPolicy,
  PodDisruptionBudget,
  PrometheusRule,
  Service,
  ServiceAccount,
  ServiceMonitor,
};

/** The version that the package has a schema of. Version v1 has the same fields. */
const EXTERNAL_SECRETS = { 'external-secrets.io/v1': 'external-secrets.io/v1beta1' };

/** Throws if a resource does not match the schema of its kind or has a field that the schema does not know. */
export function assertValid(document: Document): void {
  const Kind = KINDS[document.kind];
  if (!Kind) throw new Error(`no schema for the kind ${document.kind}`);
  const apiVersion = { ...EXTERNAL_SECRETS }[document.apiVersion as string] ?? document.apiVersion;
  const model = new Kind({ ...document, apiVersion } as never);
  const unread = new Set<string>();
  for (const [name, value] of Object.entries(model)) Object.assign(model, { [name]: withReads(value, name, unread) });
  model.validate();
  if (unread.size > 0) throw new Error(`unknown fields: ${[...unread].join(', ')}`);
}

/**
 * A copy of a value. `unread` has the paths of its fields until they are read: a schema reads each field that it knows.
 */
function withReads(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const copy = Array.isArray(value) ? [] : {};
  for (const [name, each] of Object.entries(value)) {
    const field = `${path}.${name}`;
    unread.add(field);
    const inner = withReads(each, field, unread);
    const get = () => {
      unread.delete(field);
      return inner;
    };
    Object.defineProperty(copy, name, { enumerable: true, get });
  }
  return copy;
}
