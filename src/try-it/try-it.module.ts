import { type DynamicModule, Module } from '@nestjs/common';
import { AgentAuthModule } from '../agent-auth/agent-auth.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { DemoBackendController } from './demo-backend.controller.js';
import { DemoBackendGuard } from './demo-backend.guard.js';
import { DemoBackend } from './demo-backend.js';
import { DemoSetup } from './demo-setup.js';
import type { ExtensionPage } from './extension-page.js';
import { EXTENSION_PAGE, TryItController } from './try-it.controller.js';

/** The try-it page and its demo backend. The service has this module only with `TRY_IT=true` (protocol §11). */
@Module({
  imports: [AgentAuthModule, RegistryModule],
  controllers: [TryItController, DemoBackendController],
  providers: [DemoSetup, DemoBackend, DemoBackendGuard],
})
export class TryItModule {
  /** @param page the page of the extension, to which the try-it page links */
  static forRoot(page: ExtensionPage | undefined): DynamicModule {
    return { module: TryItModule, providers: [{ provide: EXTENSION_PAGE, useValue: page ?? null }] };
  }
}
