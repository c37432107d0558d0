import { Injectable } from '@nestjs/common';
import { Clock, dayOf } from '../platform/clock.js';
import { Registry } from '../registry/registry.js';

export const DEFAULT_IDLE_DAYS = 731;

/** Decides whether a browser was not seen for so long that it no longer leads to a customer (protocol §5.9). */
@Injectable()
export class IdleRule {
  constructor(
    private readonly registry: Registry,
    private readonly clock: Clock,
  ) {}

  /** @param seenDay the last day on which the browser was seen in the organization and group */
  isIdle(organizationId: string, seenDay: number): boolean {
    const idleDays = this.registry.organization(organizationId)?.idleDays ?? DEFAULT_IDLE_DAYS;
    return seenDay < dayOf(this.clock.now()) - idleDays;
  }
}
