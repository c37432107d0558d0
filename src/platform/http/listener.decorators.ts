import { Controller, type Type } from '@nestjs/common';
import { HOST_METADATA } from '@nestjs/common/constants.js';

/**
 * A listener that a controller declares (protocol §1.5), as the `host` of Nest's `Controller`. Nest compares it with
 * the listener of the request, which `ServiceHttpAdapter` names, and skips the routes of others. A controller without a
 * listener stops the start (http/routes/route-checks.ts).
 */
export type DeclaredListener = 'public' | 'management';

/** A listener of the process. That of ADMIN_PORT takes `/admin/` over from the management port. */
export type ListenerName = DeclaredListener | 'admin';

/** A controller that browsers, apps and services reach on PORT. */
export const PublicController = (path: string | string[]): ClassDecorator => Controller({ path, host: 'public' });

/** A controller that only the cluster reaches: on MANAGEMENT_PORT, or on ADMIN_PORT below `/admin/`. */
export const ManagementController = (path: string | string[]): ClassDecorator =>
  Controller({ path, host: 'management' });

/** A controller that PORT and MANAGEMENT_PORT serve. */
export const BothPortsController = (path: string | string[]): ClassDecorator =>
  Controller({ path, host: ['public', 'management'] });

/** The listeners that a controller declares. The host of another controller is no listener. */
export function listenersOf(controller: Type): DeclaredListener[] {
  const hosts = [Reflect.getMetadata(HOST_METADATA, controller) ?? []].flat();
  return hosts.filter((host) => host === 'public' || host === 'management');
}
