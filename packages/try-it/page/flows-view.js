// @ts-check

/** Marks a step, and its flow, in the picture at the top of the page. @param {string} name */
export function markStep(name) {
  const current = document.querySelector(`.flow a[href="#${name}-title"]`);
  for (const link of document.querySelectorAll('.flow a')) link.removeAttribute('aria-current');
  for (const flow of document.querySelectorAll('.flow')) flow.classList.toggle('current', flow.contains(current));
  current?.setAttribute('aria-current', 'step');
}
