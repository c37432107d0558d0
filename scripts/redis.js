// @ts-check
import { findProgram } from './apt.js';

const REDIS = { programs: ['redis-server', 'valkey-server'], packages: ['redis-server'] };

/**
 * The path of a Redis server, installed from the distribution first if need be and `install` allows it.
 * @param {{ install?: boolean }} [options]
 */
export function findRedis({ install = false } = {}) {
  return findProgram(REDIS, install);
}
