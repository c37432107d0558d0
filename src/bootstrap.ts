import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import { DiscoveryService, HttpAdapterHost, NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { EventReader, RevocationReader } from './discovery/introspection/feed-reader.js';
import { customerCors } from './http/routes/customer-cors.js';
import { RoutePatterns } from './http/routes/route-patterns.js';
import { ExtensionHooksModule } from './identity/extension-hooks.js';
import { brokenRequest, startingResponses } from './oauth/early-responses.js';
import { RateLimitModule, type RateLimitOptions } from './oauth/limits.js';
import { OAuthExceptionFilter } from './oauth/oauth-exception.filter.js';
import { RegistryFile } from './operator/registry/file/registry-file.js';
import { AuditLog } from './platform/audit/audit.js';
import { AuditModule } from './platform/audit/audit.module.js';
import type { AuditSink } from './platform/audit/audit-event.js';
import type { Configuration } from './platform/configuration/configuration.js';
import { DatabaseStart } from './platform/database/database-start.js';
import { HealthController } from './platform/health/health.controller.js';
import type { ConnectionLimits } from './platform/http/listener.js';
import { Listeners } from './platform/http/listeners.js';
import { ServiceHttpAdapter } from './platform/http/service-http-adapter.js';
import { type Log, serviceLog, serviceLogger } from './platform/logging/log.js';
import type { MetricsRegistry } from './platform/metrics.js';
import { PlatformModule, type PlatformOptions } from './platform/platform.module.js';
import { Telemetry } from './platform/telemetry.js';
import { Registry } from './registry/registry.js';
import type { Extension } from './token/extension.js';
import { OneTimeCodes } from './token/stores/one-time-codes.js';
import { UncaughtErrors } from './uncaught-errors.js';

const DATABASE_CLOSE_TIMEOUT_MS = 1_000;

export interface ServiceOptions extends Extension, Omit<PlatformOptions, 'metrics' | 'migrations'>, RateLimitOptions {
  log?: Log;
  /** By default, the log. */
  audit?: AuditSink;
  /** Whether an extension made the registry file, as for a demo. The log then omits the audit events of its entries. */
  hasOwnRegistry?: boolean;
  /** Whether the service is the whole process, so that it handles what no code has caught. */
  isProcess?: boolean;
  /** Shorter timeouts and lower limits, for tests of all ports. */
  connections?: Partial<ConnectionLimits>;
}

type ApplicationOptions = ServiceOptions & { log: Log; metrics: MetricsRegistry };

/** A running service. */
export interface Service {
  application: INestApplication;
  port: number;
  managementPort: number;
  /** The port of the admin API, if it is configured. */
  adminPort?: number;
  /**
   * Stops the service. It reports that it is not ready and serves for `linger` more milliseconds, so that the cluster
   * can route requests elsewhere. Then it finishes the requests under way and closes all ports and the database.
   */
  stop(linger?: number): Promise<void>;
}

/** Resolves when all ports serve. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { configuration, connections, modules = [], isProcess } = options;
  const log = options.log ?? serviceLog(configuration);
  const telemetry = await Telemetry.start(configuration, log);
  const isExtended = modules.length > 0;
  const uncaught = isProcess ? new UncaughtErrors(log, telemetry.extensionErrors, isExtended) : undefined;
  const hooks = { starting: startingResponses(telemetry.metrics), brokenRequest, telemetry };
  const listeners = new Listeners(configuration, hooks, connections);
  let running: INestApplication | undefined;
  try {
    // the management port opens first: a pod that waits for its database is alive but not ready
    await listeners.listenForManagement();
    const application = await createApplication({ ...options, log, metrics: telemetry.metrics });
    running = application; // it has opened the database
    uncaught?.watch(application, [AppModule, PlatformModule, RateLimitModule, AuditModule]);
    await application.init();
    await applyRegistryFile(application, configuration);
    await listeners.serve(application.getHttpAdapter().getInstance());
    const stop = async (lingerMs = 0) => {
      await stopService(application, listeners, lingerMs);
      await telemetry.stop();
    };
    return { application, ...listeners.ports, stop };
  } catch (error) {
    await Promise.allSettled([running?.close(), listeners.close(), telemetry.stop()]);
    throw error;
  }
}

/** Without MIGRATE_ON_START, the roll-out applies the file (`registry apply`). */
async function applyRegistryFile(application: INestApplication, configuration: Configuration): Promise<void> {
  const { REGISTRY_FILE, MIGRATE_ON_START, embedded } = configuration;
  if (REGISTRY_FILE === undefined || !(MIGRATE_ON_START || embedded)) return;
  await application.get(DatabaseStart).run(async () => {
    await application.get(RegistryFile).apply(REGISTRY_FILE);
    await application.get(Registry).renew(); // another process may have applied it since this one read the registry
  });
}

async function createApplication(options: ApplicationOptions): Promise<INestApplication> {
  const { configuration } = options;
  const adapter = new ServiceHttpAdapter(configuration);
  const application = await NestFactory.create(rootModule(options), adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: serviceLogger(options.log.logger),
  });
  application.useGlobalFilters(new OAuthExceptionFilter(application.get(HttpAdapterHost)));
  const routes = new RoutePatterns(application.get(DiscoveryService));
  adapter.methodsAt = (listener, path) => routes.methodsAt(listener, path);
  application.use(customerCors(application.get(Registry), routes));
  return application;
}

export function rootModule(options: ApplicationOptions): DynamicModule {
  const { modules = [], log, audit, registryFile: _named, hasOwnRegistry, ...more } = options;
  const { participants = [], beforeNewCustomer, customerKeyFile, ...platform } = more;
  const hooks = { participants: [OneTimeCodes, ...participants], beforeNewCustomer, customerKeyFile };
  const { AUDIT_TOKEN_ISSUED_ONE_OF: tokensPerEntry } = options.configuration;
  const imports = [
    PlatformModule.forRoot(platform),
    RateLimitModule.forRoot(options),
    AuditModule.forRoot(audit ?? new AuditLog(log.logger, hasOwnRegistry, tokensPerEntry)),
    ExtensionHooksModule.forRoot(hooks),
    ...modules,
  ];
  return { module: AppModule, imports };
}

async function stopService(application: INestApplication, listeners: Listeners, lingerMs: number): Promise<void> {
  application.get(HealthController).stop();
  listeners.announceClose();
  await sleep(lingerMs);
  // callers of the feeds would wait for 25 s
  for (const reader of [EventReader, RevocationReader]) application.get(reader, { strict: false }).stop();
  await listeners.close();
  // a database that does not respond must not delay the end of the process
  await Promise.race([application.close(), sleep(DATABASE_CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
}
