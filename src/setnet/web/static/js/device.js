// What kind of device this is, and the words that fit it.

export const isTouch = () => matchMedia("(hover: none)").matches;
export const isNarrow = () => matchMedia("(max-width: 640px)").matches;
export const Press = () => (isTouch() ? "Tap" : "Click");
export const press = () => Press().toLowerCase();
