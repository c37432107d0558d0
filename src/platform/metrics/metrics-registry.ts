import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';

/** The metrics of one service; whoever measures something registers it here (docs/observability.md lists them). */
@Injectable()
export class MetricsRegistry extends Registry {}
