// @ts-check
import { findProgram } from './apt.js';

const CHROMIUM = { programs: ['chromium', 'chromium-browser', 'google-chrome'], packages: ['chromium'] };

/**
 * The path of a Chromium or Chrome, installed from the distribution first if need be and `install` allows it.
 * @param {{ install?: boolean }} [options]
 */
export function findChromium({ install = false } = {}) {
  return findProgram(CHROMIUM, install);
}
