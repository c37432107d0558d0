import type { Configuration } from '../configuration/configuration.js';
import type { Tracing } from './tracing.js';

/** `undefined` without OTEL_EXPORTER_OTLP_ENDPOINT. OpenTelemetry is then not even loaded. */
export async function startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT }: Configuration): Promise<Tracing | undefined> {
  if (OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { OtlpTracing } = await import('./otlp-tracing.js');
  return new OtlpTracing(OTEL_EXPORTER_OTLP_ENDPOINT);
}
