import type { RequestListener } from 'node:http';
import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { OAuthError } from './oauth/oauth-error.js';
import { OAuthExceptionFilter } from './oauth/oauth-exception.filter.js';
import { Readiness } from './platform/health/readiness.js';
import { Listener } from './platform/http/listeners.js';
import { ServiceHttpAdapter } from './platform/http/service-http-adapter.js';
import { ServiceLogger } from './platform/logging/service-logger.js';
import { PlatformModule, type PlatformOptions } from './platform/platform.module.js';
import { customerCors } from './registry/customer-cors.js';
import { RegistryFile } from './registry/file/registry-file.js';
import { Registry } from './registry/registry.js';

export interface ServiceOptions extends PlatformOptions {
  /** Modules beside ours: another team's grants. */
  modules?: Type[];
}

/** A running service. */
export interface Service {
  application: INestApplication;
  port: number;
  managementPort: number;
  /** Answers what has begun, closes both ports and the database. */
  stop(): Promise<void>;
}

/** Starts the service on its two ports; resolves when both serve. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { HOST, PORT, MANAGEMENT_PORT, REGISTRY_FILE } = options.configuration;
  const publicListener = new Listener('public', starting, brokenRequest);
  const managementListener = new Listener('management', starting, brokenRequest);
  // probes are answered from the first moment: a pod that waits for its database lives, and is not ready
  await managementListener.listen(MANAGEMENT_PORT, HOST);
  try {
    const application = await createApplication(options);
    if (REGISTRY_FILE) await application.get(RegistryFile).apply(REGISTRY_FILE);
    const handler = application.getHttpAdapter().getInstance() as RequestListener;
    publicListener.serve(handler);
    managementListener.serve(handler);
    await publicListener.listen(PORT, HOST);
    const stop = () => stopService(application, publicListener, managementListener);
    return { application, port: publicListener.port, managementPort: managementListener.port, stop };
  } catch (error) {
    await managementListener.close();
    throw error;
  }
}

async function createApplication(options: ServiceOptions): Promise<INestApplication> {
  const application = await NestFactory.create(
    rootModule(options),
    new ServiceHttpAdapter(options.configuration.TRUST_PROXY),
    {
      bodyParser: false,
      abortOnError: false,
      logger: new ServiceLogger(options.configuration),
    },
  );
  application.useGlobalFilters(new OAuthExceptionFilter(application.get(HttpAdapterHost)));
  application.use(customerCors(application.get(Registry)));
  try {
    return await application.init();
  } catch (error) {
    await application.close(); // the database is open already
    throw error;
  }
}

/** The service on its platform, which differs between a process, a command and a test. */
export function rootModule({ modules = [], ...platform }: ServiceOptions): DynamicModule {
  return { module: AppModule, imports: [PlatformModule.forRoot(platform), ...modules] };
}

async function stopService(
  application: INestApplication,
  publicListener: Listener,
  management: Listener,
): Promise<void> {
  application.get(Readiness).stop();
  await publicListener.close();
  await application.close();
  await management.close();
}

const starting: RequestListener = (request, response) => {
  const live = request.url === '/management/health/live';
  const error = OAuthError.unavailable();
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    ...(!live && error.headers),
  };
  response.writeHead(live ? 200 : error.status, headers);
  response.end(JSON.stringify(live ? { status: 'live' } : error.toBody('starting')));
};

function brokenRequest(status: number, requestId: string): string {
  return JSON.stringify(OAuthError.brokenRequest(status).toBody(requestId));
}
