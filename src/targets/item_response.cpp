// Item response: 400 students of unknown ability answer some of 100 questions of unknown
// difficulty.
//
// The answers are those of inference-gym 0.0.5 (synthetic, Copyright 2020 The TensorFlow
// Probability Authors, Apache License 2.0).
#include <memory>
#include <string_view>
#include <vector>

#include "targets/replicated_function.h"

namespace crais {
namespace {

constexpr int64_t kStudents = 400, kQuestions = 100;

// Student by student, three answers a letter: 9 a + 3 b + c is its place in kLetters; 0 stands for
// a question that was not asked, 1 for a wrong answer, 2 for a right one.
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view kAnswers =
    "jefnlnepunqbnbenjnmowonlnlqnjpozogoewot_uhzrnnlievqie__viwlnserfxhnmnenjnmnnnonbbnkcnmkkrn"
    "ndtnnkmnmqvkhnwotybemyopmtvsbalrynw_zvi_garnoxvrz__zxrryciomg_vww_xupx_bpivuwbennxwmxknmnf"
    "ovnjmtkqjbefdnernhnawyiqffizyntuwzymhyxbhu_l_iqe_xiirejuaxxpfvxqihjmnprienbhenohmwdywnxnwe"
    "nbkremmdqkemmokdkernrfojdqxpinxhonuxuvoyp_eclszpokwr_lyrysldgidqmet_u__ukdotyihjiink__cl_i"
    "jhugu_xnszt_idimjyezduujhti_ryokgvv_r_insqnwi_b_ybnxileyidko_zxgwizsig_luboowi_fyknfhzefnj"
    "lfpfzmtvxukcx_iqxbwkp_cxefbbovybcwjemwzsxoijnzqzbknqrqzeizztrzzugfyhzkelhcyspvongwnp_uuoiu"
    "usijcs__txyo_f_x__y_a_x__tlmrifygrxzfsttrmnuzdtmy_ov_eepypfhtgoklmidoewqelwnonkmcombdktomo"
    "lrnrrwwp_bybwuygo_dzkuwuu_lhyyeq_txwdwbbozc_trx_by__hxicztb_ax_vzy_vzbelloemqelzvobr_ffx_l"
    "o_r_sceto_xmuqowwmhrgj_cqrptolqxqnyxwfonnpgf_wovtqnzb_flrnkx_xdgehi_zw_fuddcguuzfxofprxwwq"
    "kizxhrkusqnkuyvw_zx_ibncmjczxurzig_ruhvttcqc_xix_yrwsy_w_nnheqgirmwnfpwwkopv_hrkjrwuwzklyk"
    "tbpecvoqwcqkwnekwatmkmmfdpntn_enenn_whw__lvkdqgktthvurwyvvy_nkzb_sjv_qonzo_hfsqk_wkaozvwkz"
    "mizjzerrxanofkuwxstplyymebrwylopxmwutnmqiytzof_ptxiyyjyrotvnryyadfr_uuxad_ybdqzynkzzxwwxmo"
    "_xzmbzm__lpx_zeri_irwdoeioudkqbjwkzewtbmaoyomhteodlynpmwsiz_aqzlwbuahkpipfaxa_syjli_uyotxq"
    "kqctwnwbtldlmqxwnttbxrckwemrvztfoq_xp_oqxxnyowt_ffg__ixuxmul_zybmlto_rxzllerj_nkezboxpkguk"
    "bhjyxfnhwgncdqmqu_oscwofokphzwhmnnmqx_tneji_obiiehhu_uouef__icr_hurcc_fwikovqvx_yhmizfrxll"
    "pv_vyuv_u_mkfuxwfnxamqqrgwmupkrexonykpjhme_npeonqeqnonrq_ebleownqnehznunbnzzenreflvkacnlwz"
    "xpxchctbqrszekz_ikuzgatvieuaxgezyuppwuuwiebxovykiuogxbriqkgttujkpsxqoqkfx_nswxb_lkrfo_knor"
    "jytjnneakmpmdehmendnqbnedtwnkmnkmmmkxdwegicyhll_bcynrdy_jjggwliioqhu_kzr_byofqxmyforbxnuya"
    "ycrjw_qpppujxiofvusycerkrryzbcl_ewrrxwl_u_ituxxktzoqqxxlzwdkxnmpkdnhrtdfinviklmd_hcvrdrmkn"
    "lsbmwoj_qntoaovznzsxfhygxwdzvqiydrc_uuyzizx_uyuyuurvga_qxeiuzqrqyknvvseklrungpqgumgfxnhihs"
    "xkonlxpzwwhsmznwnvmljiz_c_yerhxywqcoqokxdvomxsquqnjonpe_vm_ojpswxtobvynzqiwkmlqntoxrcwmw_t"
    "nquvcmd_xzzncnemoyubhypkwbkumcsuxgsazvofr_ornselfkxckmroykvd_zw_oiuylrhpss_wxzntw_iuwlfx_w"
    "idelpxjzc__p_wnk_qzvnojlsfezsdbhvdtxnaeenofto_knrcfrlpuytvougpdrpkxrqhlinvtuxefinwaz_ztrke"
    "nop_dhfnrehdfolopqiqlntfephqonwl_jvrxlozkswqqzbbpnmpzrnoqwvoppcddneoae_jnluhkzrhjmfz_sshlt"
    "bniexxxkwdd_iqdhvdomzwmfkdrsikmohqkesnlnkqmkjmeh_pnnnhfjnmkfonqnmxhdronnqndknlewmednbknwee"
    "hqdknnqhoumbklrjjxgzwyjojemqpwlxdihixo_slsfeb_crf_ybr_rogywkzeycwooxucyv_dwxzer_j_ojrxzrew"
    "dbnohprywnpjqjno_loxhjf_zquveqqz_r_ekiswioqojwariuvxtdmzqyqnwqyvy_uhvwy_gczrei_fxgh_v_zuru"
    "u__l_uz_xruzzryrgypsu_y_zyy_yszdyy_yuhpzhnhsznezfskipo__qsp_xhzwgqzlepnmmwoozroqbqw_qmewwp"
    "tgrww_ztliilokowzuzcr_yl_owzauz_zwo__eraqwzw_hfeehxzqsncwo_zidnm_mnkyqbeawcckzzqhl_nrmciuw"
    "e_hruiriy_xuiytctvpuiionnneketnbfrpnenbaamoenkfkloamzwnwa_whfuz_izxc_bfrr_p__zi_ik_ynricxz"
    "t__rp__tiz_qipcxu_u_sy_hn__qr_j_yko_iowpinvdzg__mwvvuaedvqfjqexpxqxnwkmt_mxjnopnkymlawbwhf"
    "olzonpipbjvqpkmuqhxkfnzobfnxxnclrmdibjmuy_okvwvv_syhxvpldzu_iyufxxwvrcthxs_yfnzwoql_epolyz"
    "_urnoaoaxwqptwpsquuhemunsxurknqdwddewoqdxqxpelmomirwkqmondeknnnmmbnnnjkfewww_uevnqesinlviz"
    "qju_gbvuraqrciyuwuip_ctxl__axqwfmyrdxhghr_v_pobvwnyrxabgnhxz_ztasnnotamkrkydoeyozoooropj_v"
    "ngbifqfn_ydztygzd_g__j__ae_ys__iujicru_z_alnrwlqxhvqxrtjdepnqmrne_kjfifnorhuvmtuzy_glf__rt"
    "rymytyxkrxp__c_yxghgz_prwnxxtwqeohrvzqrxwltanqhkwnasxuyrrxmhyxhrezddbqj_iox_dthm_rypvxvnvy"
    "trxryzxvnpqxqutvex_ihwqxdwfaospyqwngkcvloojewfqhpxkqweelpzmqxkokndjmbkcojonojewnlkmwntlhox"
    "opviqtwlurfhfnzcxlkqv_wxf_bhy_pfhuweutegkzfpwissnuyyok_ytihliruudh_utzeqpelrrfwwlzviqycxml"
    "_r_rjczymodxfqafenckmjfeqfeyqqgsnzdxnewnbevqdkmo_zuy_uxbz_ufyus_ustkc__pxuupi_cl_nnnfafqwn"
    "faroknnxqjdmnxnkknboobogceaoivqmkohxevmgnzm_ncrjrhmbhhh_vntznhkg_nioimssh_xwymjtrrzwmkzr_d"
    "nnodqnwbnekenaannmmdneqnnqnnjnoknlxxvdvxuc_vgxxzilpc_ysvyyu_nxs___xzt_vwjlwediywqvdortqmry"
    "ennouzzynmzq_pin_uvtpux_gghgzx_iigvusspx_igkmlwntzvberknkqnnnepzmmfwpzkwnoszuknen_zyodmxuc"
    "ronwrupzaiecwbnyyz_gmyonknneewkdrlkewwkenkvvnmnonhfbnkjowohvfmmoenozwlggjnmcerhnaktnwmdnww"
    "qpnrwaxoqddondpejpknkjhnnhrhfpgrux_rxyhzl_crqetyuhpx_hvixxl_yifqovxewvglroawmhhqyinnzydtlz"
    "jiczvzxfuwry_tdpllo_iuydzxnus_hgyscspu_etkeoplxhwhgvzggxvozvbalnflweixrhoruxulvrglalrrc_yz"
    "y_sk__t_uab_ac_ixddz_h_lxkaqxetxqufszyhcixsjwiztxpujokpcizaabxzfavxyellxpxh_zxoxmqxkoycs_e"
    "zzr_c_wuh_ly__u_htyuiwy__l_wygjta_iwzz_y_zlykhlyy__xvxry_s_jygrycusuz__ucx_pu_sgirgze_iyu_"
    "_xukxhik_vczqnh_i_jyrwzyuxmzld_q_yiyxnejwbprxwjccvjoxxymqenwzl_lgislvknqnncnlbnnncnnkewsqn"
    "nmfeognbdwomtpoidmxvtnzjxiy_qlnitdwpg__loneduyarbsquk_yuiimpzxkugywrvyypzyeauqhyul_r__rztx"
    "gg__gu_yzggm_xtculuiy_vponxmyv_pbiryp_atlimqdhzkhpiwcz_zdedtohmperbbov_vlmoofmu_mcznvtohse"
    "vncelerwvnnnvzwmdwmnbkhdawtenaajmbmlzhdozmmorhfupxhywzlrwqjxnhzx_nxwntnkij_fmwgnqwtcfxtzqs"
    "estolohrwhhrlfcum__snhxyq_vwiohiviaizrudijsqimwowvtngrezuzgrqsvyeutk_xqfurutx_f_vu_ynqf_pa"
    "_urgruejrbll_wzuzg_t_nfioyxivbf_pgzxe_slfx_i__bpckirfno_boeimvrmb_j_njtnqruxdyugrmyzihetvs"
    "ah__xux_vb_xgoyrrpjzifyubr_j_gxnmovynqtmnvwxnnnzlf__llrizko_licrcswm_qszxlczhpyhblxc_xvzaz"
    "ncusunwfewnznkejnenqnkbwqnkqnjnw_wdreqzpwbmkqoakvpayoonbfbcjnexqn_zeneroep_yffyy__zr_t_z_r"
    "__t___uu_yzbii_ywnehvznndenkkkqpnlnnonnwnonknesqkbwndnokeqbeqnzoemkohwdnomnhwemnopbcuqif_x"
    "igpr__eawolrirxmbhqxmp__ffxentnhqhnnwnmnyonjqwjvnnklqeqhodhhw_nicxfpigycwowjtskmqnyodhwnc_"
    "mkdennvoeenbzjmwcepmkonbetwwnnbjfepdtohknkvcwdvondunkmoebpaaqiwdnjrqwnwhxwxyvy_ii_zztq_xai"
    "h_ugo_jrxduryhonwawx_huus_l__hrumvbcxaiyrheyczvemzmnlnmnenaeanmekekgzkzeqnjkqnyphhiuuu__bw"
    "_gg_qjtxxrkhgtmuhmdpxyfqiuxwzx_zoj_qw_nkuxprlgxz__xm_yywxshhwipyfqlxlg_okf_tqjqw_lz_jkbifq"
    "lqriu_lrxvqyrizvfctz_liya_po_cui_lioxuj_icprhpy_zqhjlxgxz_ivnky_iyxmpknziyheousqfuqbgwqnhx"
    "ekuknifrzgzim_giyh_yxyyoijqy___r_ix_ioorguu_owqhwxugnortzwe_jktwx_vhj_eney_hbgohgsy_c_auyy"
    "_uzyyg_y___uy_f_yy_qygyoirxgo_uowy_fxvqlyxyyf_zouxiudhtozlufweqosurdbeqrqmwffpggnnzvxpxmxr"
    "ri__upxh_a_ivmiz_pyyxnitlcyg_parlfrxilxj_ypzyuwszvjsiynsywrfcyup_yvig_syxmiuisuzy_k_y_y_rc"
    "xix_iuftyiju_c_suxrfuirxqzfx___m_uz_lyiyzlnqxkfvwaeyydnknwnmtnmzsuznoofcmrjnwxvfelunrbdvqw"
    "koriyfdbpdd_cvczxz_tx_rrvbxscdyzklky_iccuoxhqjficp_ivhrf_gxypzxkqvmwlxdmsfgiyhcciprqxnedsp"
    "lkmnapouvkhzrnxuqylcenvguqf__ygy_ui_u_riuug__uq__siyydz__yciulokc_jzilqxtrka_cio_drhuhgxwv"
    "xyfqmbpczautrhslfqhxjrewuuufuweuxhzovkzvnwiebboqojwmonhbyoybnlkonngolmwgqmdfnvlsxqsknweyzt"
    "ylrkwcqnlvxwdvmnwnwbwjnyctonnwkibebmjkpekkuwfwmngkjrqqnnlojnqnkonyhgomnm_nnnpqwbtnfvdupbds"
    "bmwokonnkomovmw_jklplpvqrvxcflsqsdiwrwlkfghqzwxfbzmqtfxzxtqhncqpttejxrxifkwigwizzqbedopuct"
    "abzm_iokmhdnkebknoznnmnmnijelpkocoayxi_xa_vri_xxizzixzf_b_u_uihggixwzzj___x_cuy_yyi_s_br_i"
    "gyu_iu__xpzcvjfol_cpixhinwb_zzq_msuyrloxyr_kmqmewtnqnmpwmtfdlhenxrtnlcmwqfxojwdamci__ufphu"
    "_ynl_mk_p_yt_c_uypwqdhjnomnheemveckntwnujnbwbjjenjnhbhkqenwwwqbnmaetmdkonbnlkprnnejwnhxnep"
    "knqfpmvkbmltblnummvupfbslmqplwwcreifycpfmzfczxxx_xscnrx_zxr_pzikczteec_iplgjntbyr_jv_hthih"
    "o_tsxqvzfbqei_vqeixizlmerzvtihrluogyzjggsrohal_mqqryfljqeeqbprfyd_enowxgfbfnanknqkoemkpnea"
    "eonnnanbdwkbwdmeokehssfzonnvtqnrqllztu_frmhuferi_qwjlbmglkbmewnoemdtnekenkekdnokontpjlknwn"
    "neeeencwnndbqbnnvnjmmawkndfmjkqzrnwnjmmtnokaqnggqqnerkppqljb_oor_fuhevpgqpfxvwzx_yarg_ilru"
    "grubomxnyzkywlornwmkphqnwcct_wmmxvlevet_mjzimswvlzywlolikbly_kzdvbji_n_rvpgiy_bpqiiplfzuqz"
    "rgsxirzzrxcf_annemefgpeqyrnbhka_dbpdvzjemnq_xnuj_dngqqhwxxxkixnxpqjesgnmhfrksq_wwdjeqnnjxb"
    "nvwddtzweeiiepmzwjkkgnqineknbj_kjnmrmkqmmzbanxweqnemnevkxdzkmpqgjnjlvzvvpxeeddzjqlgleiqith"
    "qfrulyszfy_lic_u_znrlpr_wuxfxixrrkknwbwzdnvnqqqmmpkoennnwjoonjnfeemwmzenhzkanqebnnelhhkxkp"
    "ntwmeirgwe_k_hu_yytgssixfd_cmhu__uxscf_yr_xrrivrug_qyqri_yirliysux__i_aiui_s_w_ho_mhvqntit"
    "lknoynpph_jr_emqzgfkzuio_rizhwzu_uuwr_ysoyyhb_z_rxuusufqvax_xpdjeoowwkrnnvnyhtrwnertdpcfy_"
    "zryucyx_iyif__ivgi_g_uiict_a_tffrmqxgybhqt_iwlwiykmvijvtzfkod_khiyxos__m_rii__rpzy__yczk__"
    "kyi_xumxyyqut_zjuiix_uk__izi_hruhgzy_y_kgqls_i__ozzzipvtzkn_cyfyuz_xvv_rxudmavsxirfiqxr_mk"
    "r_azgxcab_arys_txzuynzr__heiruibiriiz_ittqswpgvitiwhlhrrrzuqwuxcbvoc_sliyiwckv_aupujjvnene"
    "jwjmqjkteklkjlnyeqmnenybnkcmxqrzruvnefizdftprsmr_otm_wuyshhkjhnmrmoxnblpghqxthpflmlidipjxd"
    "oknr_xuixu_rwr_trcz_lgslicihg_fruzxtxhmhyac_cetioepmrouwpl_iloixnyqpljwy_io__httisayzc_ai_"
    "rilu_iysiayyi_fmsnwcrquhunnlvggcnytvvgyxjjnvisvjqkkkohfemowwynnnnqmqnnmmnknkwprqwnbpnkutnn"
    "n_tpatnzeejlcnwrkwekczcjtjyko_who_zvccqhrxdncz_eb_nqxjx_uygzkzrelnvkodxlm_nyopoywwwndqtoqk"
    "ybrdrpxqdiygtuyki_ixfyuaxcsulusuibfwxkdgonvmqlnnlkpvpjwxeklintsdzlomvyzl_quodcvhuxrolcpzmp"
    "fuwdqbiithvnnnooldoqqoljwmtqnleqpjwowdocanwryhen__zirrvcu_jhixhbf_hsjynsi__wtksemznvemknhh"
    "mwmcpkjqnndfheeknrsqhr_ey__yuzxu_yhdqh__yiurfizufux__iri_xfcgrcp_uy_s_s_i_sxg___p_uui_vkez"
    "egrilwochrgvjupdl__ysyuxqgcraqkq_kl_p_ydlsgryevwhfcou_eiwkfgyyvlvuyryh_qiz_ci_myql_gsvzzyc"
    "_niztkxciwdqmfkbeovekljaunfewreoqnnqhqknhopkkpcwhqdxwrsxdxcoxiqxn_qtowsybqlpoemsihgoluvya_"
    "p_vhwyjvouewtydtxw_sfuy_woxuroswfnnqexr_yuuvqhprjnkjknloxztzvstvgnbzgnrs_xnivnmu_pdhrovjte"
    "_brx_c__rhuyyytisri_wyxdrzpttqotirsrs_zevvxafxemr_nkztnssmzhiirgz_sgc_ayyiiuzizy_r_xxszm_d"
    "___llnxmcuqqmkgowkewnrmmpnqmxnenozueokbdkqonxomnpnojmfinqcebeozkbrqqkkerijmruu_kruscnuouuz"
    "fulohuuullirmpornsybftwpn_xwdeqznencweddkkzxvbfnvqfcrrcoljjwicvxgwhqiybpwxl___zrzozwoxozek"
    "edyqponxhofkpze_wveofiogfkfvouyqefrmxaknjgvfeztnovorxfznunzgxz__gobdr_udilccyw_s_rz_qrr_xk"
    "kkdxa_sp_nhatrqeoxuejyiycuylxyy_xqfiiffisyeo_ypscokudvvyeq_c_kltuw_quqqhvbmkaxfnotqfcwennt"
    "tosfnlap_wsopnmnvztnjjipotmvknnkvfmiwzooxfnkfnmlsxqqjcnrssgcjomqz_whcxpe_tcquitbeitupnzglv"
    "klookzb_yrff_enehithwqtbprgq_qmxnlkcy_yfyuurn_hnrko_mnoetefaerdeankcbekdktbxeeromngnwnueci"
    "hisuv_ms_p_cr_yu_iih_rs_q_fxyjapodarmeephztjzchskvvfrcfuyimojpmtmtkkqnejfnywwnakmbdwzopjjn"
    "mkebqnauuzwzhpuyxsib_zrryyz_yct___uuii_q_i_oc_zigz_ii__uy_gi__i_x_iuycitupjyahf_zwprksxopr"
    "rnoawzvwi_efznyhuvshup_coixshqvyiuzvg_i_mo__z__rytbmmmoqrnvkncjonnqohnswjwzzvblqoinglemkkx"
    "junoxrhbqzqnoww_terxmxxohqdvmqk_b_cnixgzumbcieqlkrbo_cvdrksexuphpcvvxowyeyg_zyyyxcr_t_qbog"
    "_isqfiqoww_ysrphxjgrgypfg_wlrmprxxgzxnhpvjkousflmrsxp_swprgnrowtqqhiahalrdmgkvnqntxlalnggn"
    "rtphrradxilc_pnhcrwadkfmaldcnkkunjxnwnofnnhcwvfopgnrroxolxnesmmovmqpplkhuolztohaqdlbrvizte"
    "bbmoqxdtir_auinisweiu_xrmkxnwhnnookvrynnhnmvbsvjjzmkxhvvomwqntezskawikuwlopeeg_yeotden_cvd"
    "stgi_y_bugqri___u_hx_urfxuzu_c_pxciysx_g_d_jc__p_bgylvv__z_xluy_iw_yhy__iorky_uy_cimruc_zp"
    "seyuoryjspermdhnbjjqeenqkqmvnnnfepkzmbnqotncetvlvhyjkjpguhcmuxnwwuf_uwnnvz_scnbejeqqfmoaew"
    "kknqkwkgbydrzmmrrphmornfolreopenkpenenqdolrkd_pkfqqgphftvudtmfnoi_n_praevxhfaerwkoxtxkwnzm"
    "nzormowwim_fjirfrgkzvowumrquagsvcmu_p_xhiuvi_ztz_xnraafiwhwrcqcruliryful_xijuuzur_sudzzugz"
    "_ryi_tutwzyiziujwxmnaeomyfsc_h_p_fjiyhvovnumvilywkbumfnwnnmoojemjpyeoem_jkrotucryspdrhkpjz"
    "kfqv_iweckqwzas_mwkqnqmhmqxldphmkonslejjhoifdqeitnzeoniolunturxuyekcqmefznw_tcgpjfdqmjwnog"
    "dpmrktmktnntbnz_jdimeg_dtqxdn_fy_yocwacipfeeaqwj_zqogenzzrunw_rpxur_ekrtxlqbayhjmioftgsbm_"
    "_sjgodvjevuqmmyndfwmn_svruukissckisnowxtccu_dnxxiwlv_oiisz__ruyxup_i_hvejtrihrvmkdqczomx_k"
    "owzatnmmshwnvlsrsrcuzkzrq_o_mwzvaztlzilfmcrzuzwwhzqp_dkglwxfzvafqxzditinvoxjohhjtbljtfvtsp"
    "bqkihwmwzdjwlsniqenlxiehcstlnbyzagequznsywycuukgjvfnxtxblezzsy_yryouiyyxrvror_uili_vrsh_sk"
    "x_wwlo_bhwlzzgpmqzhhomccuuzwmirzxhfkwcovyrtfzzcbqqprjevvzzrugparusxfebjxyznx_xuu_ejbpfalvq"
    "zozsep_p_znqpncwlwtjembmbqrtnokeqkepknaonqbrmtkyw_tljk_yrunkaootifc_fxja_huyxeegnecqoqxnzn"
    "nbpdvmeoopknskmmgqwqzjchpo_bfnkmxpgmkvfzchntvrpxlfxyllorhriy_rpr_yrzgq_dr_h_yhucyt__xsxi__"
    "r_z_yr_ccihacyi__y_lscucurcuinnernimawonmokhkqnzedqmifkikooymeukvxtnwrulfptwiuqqwwtouftzil"
    "lklzstxosniurhumtzrcazdonzrkzrprrvnkrq_qskleoktwedvrvyqunwznfvcewpcwmqmlxcfdkennwnmcdnnjmz"
    "nnonkennonknnnkmdbybtqqtswnwtmnkqodvmqmnfdhsnqidykya_rj_gt_uusiylsia_sgrgui_ubgfcgxanmwmhy"
    "gnckkpvvknpqkkgewmetkj_qdemwzpfgsvygajdqaxkohvkbqrrpuxwlohmqempnomwneapovrmatdnnpnvyxxqloo"
    "fqtaojzwfs_ido_sqy_khchcxxv_rduqziazfws_nh__uktsubbwyrrvzhczingiqzrxkzkhfnrxjaypmnsimenwpe"
    "wetwnzwnoduxxpleeg_ztexqtu_meolzef_pzivfnmergqbnvjnnhqqnnnaswklvqwnqqhbeqooqr_smemomroumlf"
    "htopbtfekipjnwwxyrlfozopj_hswyyay_u_thickshyuuhzi_zogu_yvswyez_riyfpor_o__pxoyrlxhysqxcozh"
    "ybieqoohwlpfbwbhqmperxlrwzsn_cxzspdnzxtztrmdnnkzfkr_nebi_llzbpqzscodthmzi_xoutvwstroiuduvu"
    "im_zrrcuxezfijiovzsbzbuftdexixgs_nw_ztx____pnuwlzr_iohiuutqqryewtc_arldroz_danwenkquovsfnw"
    "bzljlekzrnmobwnlkpwqvzlpgswfxbkizfxbkvhjkaxwh_porlohucozvixyizuko_e_twwrots_srirwwzwyqat_m"
    "jzqikueywlwvrapfm_lvwjgfvqprovwjgb_orhmprflgqztfixxlykhchmxg_hkps_sozy_xmkruutcyn_tr_svcy_"
    "_u_z_wyohqocy_xnncjcchdo_ozruuxrsdtki_xk_azrir__smyeeupvb_nji_yukgoxjoqhflxvebx__tvyl_wknz"
    "puystyzoqx_lnzxpxkgzwc_fepbugzqonooventsbntnjbegwehiilyp_zxw__uiecqcpfxcjlo_woc_oifqrwwcxz"
    "_qrvogluu_qxnxtcy_quhptssaxezheztcwufncocyoruobypyqj_tn__bzqwqum_scywsugutjxwuhndq_bo_zk_c"
    "irnpuxzo_ttzzuqupsfygzwp_dbwbykqix_nozwtnqiizytylqxvpxyypkrt_ezqcrgrtqt_ihifrhppsculzlvxeg"
    "o__gtyezjua_urxwzosuizqoriiiszkiru_iyz_phwyyyalnnneidhanvxlgnnmokmkwkzkxkuekwhpbwhop_iuzsx"
    "mvzrsswitxpmixhyhe_c_txlro_dyigrsp__gitusix__igwy_kyz_y_xuz_kqsxxoxaztttrrbfyu_frl_ejpiqzg"
    "ntobnowxwq_soownmwnolnconlnnmronnneoelcmvamr__xwtrrusuhlarcohqwzxqfnwyjchhnmeolnzliicxnqlu"
    "cpxmyqrprbkpresoud_pez_zwztxhjc_ipvtihcn_ugkmxnvyq_qpk_wz_paisqdoczzostehcuwchhlstl_dqbrgz"
    "cj_mwmprqyumzdsi_iynvqipixiqxy_u_izbauhy_xyrfugfo_yigiojhnguypoouqfzlbstxvxtih_sdnnb_smaep"
    "wzktknlowwwfnnmolnnmnoenqrlvhnyg_yy_ixtiyutcs_hzzr_uuzvutufz_rs_l_gacyiuuiuyyuh___brxc_ti_"
    "htyzxwohvtbatgbqtgyk_truyop_xao__vjfgazbmknnrclemnqwndnlnnzknghxnjikoonnnknkkbmorkomztesng"
    "eqnotqsdtfqnmjvnukzbibfrvretnzffmnwxqnhglryxdlzqwqwponxojkenqtnnnwmttmodenwfqnqnpcnndwaosw"
    "jenrwzewphn_zflxznihiqhwujmezcvzmxfmxsolumnmrbqarrlretbyqrnnwhrnmjowtbjvwgbmpwznlk_fw_znme"
    "ovmqmmvewwfmoln_vwjtpueyjwuy_vbqlnteomyuqa_pxzwlvllwpycd_bzhtlhmxbgh_qsclrcjuxgqgxxiwcw__x"
    "voo_w_nvrqxyoj";

/// [400,100]: 0 not asked, 1 wrong, 2 right.
at::Tensor answers() {
  std::vector<int64_t> all;
  for (const char letter : kAnswers) {
    const auto code = static_cast<int64_t>(kLetters.find(letter));
    all.insert(all.end(), {code / 9, code / 3 % 3, code % 3});
  }
  return at::tensor(all, at::kLong).slice(0, 0, kStudents * kQuestions).view({kStudents, -1});
}

/// z = (mean, ability [400], difficulty [100]): the logit of a right answer is mean + ability -
/// difficulty; mean ~ N(0.75, 1), abilities and difficulties N(0, 1).
ReplicatedFunction::LogDensity item_response(const at::TensorOptions& tensors) {
  const at::Tensor given = answers();
  const at::Tensor right = (given == 2).to(tensors), asked = (given > 0).to(tensors);
  return [=](const at::Tensor& z) {
    const at::Tensor mean = z.slice(-1, 0, 1), ability = z.slice(-1, 1, kStudents + 1),
                     difficulty = z.slice(-1, kStudents + 1);
    const at::Tensor logit = (mean + ability).unsqueeze(-1) - difficulty.unsqueeze(-2);
    const at::Tensor seen = right * logit - asked * at::softplus(logit);
    return normal_log_density(mean, 0.75).sum(-1) + normal_log_density(z.slice(-1, 1)).sum(-1) +
           seen.sum({-2, -1});
  };
}

const Enrol<TargetRegistry> kEnrolItemResponse(
    "item-response",
    {"item-response", "400 students' abilities and 100 questions' difficulties, by their answers",
     "item-response", [](Spec&, const TargetOptions& options) {
       return std::make_unique<ReplicatedFunction>(options, kStudents + kQuestions + 1,
                                                   std::nullopt, item_response(options.tensors));
     }});

}  // namespace
}  // namespace crais
