// The emoji that apps use most. Others show as their name, as Slack shows
// names that a workspace does not have.
const table = `
white_check_mark ✅|heavy_check_mark ✔️|ballot_box_with_check ☑️|x ❌|negative_squared_cross_mark ❎|no_entry ⛔|no_entry_sign 🚫
warning ⚠️|rotating_light 🚨|octagonal_sign 🛑|construction 🚧|exclamation ❗|question ❓|bangbang ‼️|information_source ℹ️
hourglass ⌛|hourglass_flowing_sand ⏳|alarm_clock ⏰|stopwatch ⏱️|clock1 🕐|calendar 📅|date 📅|bell 🔔|no_bell 🔕
eyes 👀|mag 🔍|lock 🔒|unlock 🔓|key 🔑|shield 🛡️|pencil 📝|pencil2 ✏️|memo 📝|lower_left_fountain_pen 🖋️|lower_left_ballpoint_pen 🖊️
robot_face 🤖|gear ⚙️|wrench 🔧|hammer 🔨|hammer_and_wrench 🛠️|toolbox 🧰|package 📦|wastebasket 🗑️|file_folder 📁|open_file_folder 📂
page_facing_up 📄|clipboard 📋|bar_chart 📊|chart_with_upwards_trend 📈|chart_with_downwards_trend 📉|floppy_disk 💾|computer 💻
email 📧|envelope ✉️|incoming_envelope 📨|inbox_tray 📥|outbox_tray 📤|link 🔗|paperclip 📎|pushpin 📌|bookmark 🔖|label 🏷️
rocket 🚀|tada 🎉|sparkles ✨|fire 🔥|zap ⚡|star ⭐|bulb 💡|boom 💥|100 💯|trophy 🏆|medal 🏅|seedling 🌱|bug 🐛|broom 🧹
large_green_circle 🟢|large_yellow_circle 🟡|large_orange_circle 🟠|red_circle 🔴|large_blue_circle 🔵|white_circle ⚪|black_circle ⚫
large_green_square 🟩|large_yellow_square 🟨|large_red_square 🟥|arrow_right ➡️|arrow_left ⬅️|arrow_up ⬆️|arrow_down ⬇️
arrows_counterclockwise 🔄|repeat 🔁|leftwards_arrow_with_hook ↩️|fast_forward ⏩|double_vertical_bar ⏸️|black_square_for_stop ⏹️
+1 👍|thumbsup 👍|-1 👎|thumbsdown 👎|wave 👋|raised_hands 🙌|clap 👏|pray 🙏|ok_hand 👌|muscle 💪|point_right 👉|point_up ☝️|handshake 🤝
smile 😄|grinning 😀|slightly_smiling_face 🙂|wink 😉|joy 😂|thinking_face 🤔|sweat_smile 😅|cry 😢|sob 😭|scream 😱|sunglasses 😎|heart ❤️
busts_in_silhouette 👥|bust_in_silhouette 👤|speech_balloon 💬|thought_balloon 💭|mega 📣|loudspeaker 📢|moneybag 💰|credit_card 💳|coffee ☕
`;

const known = new Map(table.trim().split(/[|\n]/).map((pair) => pair.split(" ") as [string, string]));

/** emojiOf is the character of a name, if it is known. */
export const emojiOf = (name: string): string | undefined => known.get(name);
