/** The build copies the file of the package browser-client to dist/ (scripts/build.js). */
export * from '../../browser-client/src/verifier.js';
