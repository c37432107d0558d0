import type { RequestListener } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { AuditModule } from './audit/audit.module.js';
import type { AuditSink } from './audit/audit-event.js';
import { AuditLog } from './audit/audit-log.js';
import type { Extension } from './extension.js';
import { brokenRequest, starting } from './oauth/early-responses.js';
import { OAuthExceptionFilter } from './oauth/oauth-exception.filter.js';
import { Readiness } from './platform/health/readiness.js';
import { type ConnectionLimits, MANAGEMENT_LIMITS, PUBLIC_LIMITS } from './platform/http/connection-limits.js';
import { Listener } from './platform/http/listeners.js';
import { ServiceHttpAdapter } from './platform/http/service-http-adapter.js';
import { pathOn } from './platform/http/surfaces.js';
import { type Log, serviceLog } from './platform/logging/log.js';
import { ServiceLogger } from './platform/logging/service-logger.js';
import type { MetricsRegistry } from './platform/metrics/metrics-registry.js';
import { PlatformModule, type PlatformOptions } from './platform/platform.module.js';
import { Telemetry } from './platform/telemetry.js';
import { customerCors } from './registry/customer-cors.js';
import { FollowedRegistryFile } from './registry/file/followed-registry-file.js';
import { Registry } from './registry/registry.js';

const ADMIN_PATH = pathOn('management', '/admin/');
/** How long a stop waits for the connections to the database to close. */
const DATABASE_CLOSE_TIMEOUT_MS = 1_000;

export interface ServiceOptions extends Extension, Omit<PlatformOptions, 'metrics' | 'migrations'> {
  /** The service's log. By default it goes to stdout. */
  log?: Log;
  /** Receives the audit events. By default they go to the log. */
  audit?: AuditSink;
  /** Shorter timeouts and lower limits, for tests of both ports. */
  connections?: Partial<ConnectionLimits>;
}

/** The options with the log and the metrics that `startService` has created. */
type ApplicationOptions = ServiceOptions & { log: Log; metrics: MetricsRegistry };

/** A running service. */
export interface Service {
  application: INestApplication;
  port: number;
  managementPort: number;
  /**
   * Stops the service. It reports that it is not ready and serves for `linger` more milliseconds, so that the cluster
   * can route requests elsewhere. Then it finishes the requests under way and closes both ports and the database.
   */
  stop(linger?: number): Promise<void>;
}

/** Starts the service. Resolves when both ports serve. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { HOST, PORT, MANAGEMENT_PORT, REGISTRY_FILE } = options.configuration;
  const log = options.log ?? serviceLog(options.configuration);
  const telemetry = await Telemetry.start(options.configuration, log);
  const hooks = { starting, brokenRequest, observer: telemetry };
  const publicListener = new Listener('public', hooks, { ...PUBLIC_LIMITS, ...options.connections });
  const managementListener = new Listener('management', hooks, { ...MANAGEMENT_LIMITS, ...options.connections });
  // the management port opens first: a pod that waits for its database is alive and not ready
  await managementListener.listen(MANAGEMENT_PORT, HOST);
  let running: INestApplication | undefined;
  try {
    const application = await createApplication({ ...options, log, metrics: telemetry.metrics });
    running = application;
    if (REGISTRY_FILE) await application.get(FollowedRegistryFile).follow(REGISTRY_FILE);
    const handler = application.getHttpAdapter().getInstance() as RequestListener;
    publicListener.serve(handler);
    managementListener.serve(handler);
    await publicListener.listen(PORT, HOST);
    const stop = async (linger = 0) => {
      await stopService(application, publicListener, managementListener, linger);
      await telemetry.stop();
    };
    return { application, port: publicListener.port, managementPort: managementListener.port, stop };
  } catch (error) {
    await running?.close();
    await managementListener.close();
    throw error;
  }
}

async function createApplication(options: ApplicationOptions): Promise<INestApplication> {
  const { TRUST_PROXY, hasAdminTokens } = options.configuration;
  // without an admin token the admin API does not exist (protocol §9.1)
  const isClosed = (path: string) => !hasAdminTokens && path.startsWith(ADMIN_PATH);
  const application = await NestFactory.create(rootModule(options), new ServiceHttpAdapter(TRUST_PROXY, isClosed), {
    bodyParser: false,
    abortOnError: false,
    logger: new ServiceLogger(options.log.logger),
  });
  application.useGlobalFilters(new OAuthExceptionFilter(application.get(HttpAdapterHost)));
  application.use(customerCors(application.get(Registry)));
  try {
    return await application.init();
  } catch (error) {
    await application.close(); // the database was opened before the error
    throw error;
  }
}

/** The root module with a platform. The platform differs between a process, a command and a test. */
export function rootModule({ modules = [], log, audit, ...platform }: ApplicationOptions): DynamicModule {
  const sink = audit ?? new AuditLog(log.logger);
  return { module: AppModule, imports: [PlatformModule.forRoot(platform), AuditModule.forRoot(sink), ...modules] };
}

async function stopService(
  application: INestApplication,
  publicListener: Listener,
  managementListener: Listener,
  lingerMs: number,
): Promise<void> {
  application.get(Readiness).stop();
  publicListener.announceClose();
  await sleep(lingerMs);
  await publicListener.close();
  // a database that does not respond must not delay the end of the process
  await Promise.race([application.close(), sleep(DATABASE_CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  await managementListener.close();
}
