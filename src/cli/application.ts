import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { rootModule } from '../bootstrap.js';
import { loadConfiguration } from '../platform/configuration/load-configuration.js';
import { ServiceLogger } from '../platform/logging/service-logger.js';

/** Runs a command inside the application, without its ports; a database that is away ends it at once. */
export async function withApplication<Result>(
  work: (application: INestApplicationContext) => Promise<Result>,
): Promise<Result> {
  const configuration = loadConfiguration();
  const application = await NestFactory.createApplicationContext(rootModule({ configuration, patience: 0 }), {
    abortOnError: false,
    logger: new ServiceLogger(configuration),
  });
  try {
    return await work(application);
  } finally {
    await application.close();
  }
}
