import { Configuration } from '@customer-authorization/service/grant';
import { type MiddlewareConsumer, Module, type NestModule, RequestMethod } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { DemoBackendController } from './demo-backend.controller.js';
import { DemoBackendGuard } from './demo-backend.guard.js';
import { DemoBackend } from './demo-backend.js';
import { DemoSetup } from './demo-setup.js';
import { TryItController } from './try-it.controller.js';

/** The try-it page and its demo backend. The service serves its routes only with `TRY_IT=true` (protocol §11). */
@Module({
  controllers: [TryItController, DemoBackendController],
  providers: [DemoSetup, DemoBackend, DemoBackendGuard],
})
export class TryItModule implements NestModule {
  constructor(private readonly configuration: Configuration) {}

  configure(consumer: MiddlewareConsumer): void {
    if (this.configuration.TRY_IT) consumer.apply(leadToPage).forRoutes({ path: '/', method: RequestMethod.GET });
  }
}

/** A developer opens the root first, which without parameters is an error page of the authorization endpoint. */
function leadToPage(request: Request, response: Response, next: NextFunction): void {
  if (request.originalUrl === '/') response.status(302).setHeader('Location', '/try').end();
  else next();
}
