import { Injectable } from '@nestjs/common';
import { Registry } from 'prom-client';

/** The metrics of one process. docs/observability.md lists them. */
@Injectable()
export class MetricsRegistry extends Registry {}
