import { Controller, type Type } from '@nestjs/common';
import { HOST_METADATA } from '@nestjs/common/constants.js';

/**
 * The surfaces of the service (protocol §1.5). A controller declares its surfaces as the `host` of Nest's `Controller`.
 * Nest compares them with the surface of the request, which `ServiceHttpAdapter` names, and skips the routes of other
 * surfaces. A controller without a surface stops the start (http/routes/route-checks.ts).
 */
export type Surface = 'public' | 'management';

/** A port. ADMIN_PORT takes `/admin/` over from the management port. */
export type Port = Surface | 'admin';

/** A controller that browsers, apps and services reach on PORT. */
export const PublicController = (path: string | string[]): ClassDecorator => Controller({ path, host: 'public' });

/** A controller that only the cluster reaches: on MANAGEMENT_PORT, or on ADMIN_PORT below `/admin/`. */
export const ManagementController = (path: string | string[]): ClassDecorator =>
  Controller({ path, host: 'management' });

/** A controller that PORT and MANAGEMENT_PORT serve. */
export const BothPortsController = (path: string | string[]): ClassDecorator =>
  Controller({ path, host: ['public', 'management'] });

/** The surfaces that a controller declares. The host of another controller is no surface. */
export function surfacesOf(controller: Type): Surface[] {
  const hosts = [Reflect.getMetadata(HOST_METADATA, controller) ?? []].flat();
  return hosts.filter((host) => host === 'public' || host === 'management');
}
