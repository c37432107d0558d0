#!/usr/bin/env node
// @ts-check
/**
 * The program of the published package: starts the service, runs the operator's commands, and writes a package of a
 * grant.
 */
const isNewPackage = process.argv[2] === 'new-package';
await import(new URL(isNewPackage ? 'new-package.js' : '../dist/cli.js', import.meta.url).href);
